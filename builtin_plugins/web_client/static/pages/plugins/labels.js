/** The marketplace's values for plugins, in words. The values are keys of the texts. */

export const STATES = { draft: "Draft", submitted: "Submitted", in_review: "In review", rejected: "Rejected", archived: "Archived" };

export const PRICES = { free: "Free", paid: "Paid", freemium: "Free, with paid extras" };
