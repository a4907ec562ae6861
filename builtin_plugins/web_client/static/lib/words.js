/**
 * Texts in the reader's language. English texts are their own keys; any other language is one file that
 * maps them, only loaded if needed.
 */

import { signal } from "./html.js";
import { ASSETS, LANGUAGE_FILES } from "./place.js";

/** Codes of the known languages: English, and one for each file. */
export const LANGUAGES = ["en", ...LANGUAGE_FILES];

const KEPT = "platform.language";
const texts = signal({});
export const language = signal("en");

/** What a language's own speakers call it. */
export function nameOfLanguage(code) {
  const name = new Intl.DisplayNames(code, { type: "language" }).of(code);
  return name.slice(0, 1).toLocaleUpperCase(code) + name.slice(1);
}

/** Load the texts of the chosen language, else of the first known one among the browser's. */
export async function loadLanguage(wanted = chosen()) {
  const code = LANGUAGES.includes(wanted) ? wanted : "en";
  texts.value = code === "en" ? {} : (await import(`${ASSETS}languages/${code}.js`)).default;
  language.value = code;
  document.documentElement.lang = code;
}

/** Choose a language, here and on the next visit. */
export function chooseLanguage(code) {
  localStorage.setItem(KEPT, code);
  return loadLanguage(code);
}

function chosen() {
  const kept = localStorage.getItem(KEPT);
  const wanted = navigator.languages.flatMap((tag) => [tag, tag.split("-")[0]]);
  return [kept, ...wanted].find((code) => LANGUAGES.includes(code)) ?? "en";
}

/** A text, with `{name}` filled in. */
export function t(text, values = {}) {
  return fill(texts.value[text] ?? text, values);
}

/**
 * A text that depends on a number, which fills in `{n}`. Where 0 is singular, as in French, it takes the
 * form of one if that shows the number.
 */
export function plural(count, one, other) {
  const isOne = count === 1 || (shows(one, "{n}") && format(Intl.PluralRules).select(count) === "one");
  return t(isOne ? one : other, { n: number(count) });
}

const shows = (text, place) => (texts.value[text] ?? text).includes(place);

/** Where a source is: the headings above it and its page, as far as they are known. */
export function whereIs(source) {
  return [source.section, source.page && pageOf(source)].filter(Boolean).join(" · ");
}

/** Where something of a file is: on the page of its quote, else on the pages of its passage; a table's are sheets. */
export function pageOf({ page, last_page: last, source, filename = source }) {
  const [one, several] = hasSheets(filename) ? ["sheet {n}", "sheets {from} to {to}"] : ["page {n}", "pages {from} to {to}"];
  return last ? t(several, { from: number(page), to: number(last) }) : t(one, { n: number(page) });
}

/** How long a document is: "12 pages", "one sheet"; nothing if that is unknown. */
export function lengthOf({ page_count: count, filename }) {
  return count && (hasSheets(filename) ? plural(count, "one sheet", "{n} sheets") : plural(count, "one page", "{n} pages"));
}

const hasSheets = (filename) => /\.(xls[xmb]?|ods)$/i.test(filename);

function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Dates and numbers follow the browser's locale if that is of the chosen language. */
const locale = () => navigator.languages.find((tag) => tag.startsWith(language.value)) ?? language.value;

/** Creating a formatter takes longer than formatting a whole page with it: each is created once. */
const formats = new Map();

function format(Kind, options = {}) {
  const key = [Kind.name, locale(), ...Object.entries(options)].join();
  if (!formats.has(key)) formats.set(key, new Kind(locale(), options));
  return formats.get(key);
}

export const number = (value, options) => format(Intl.NumberFormat, options).format(value);

export const percent = (share) => number(share, { style: "percent", maximumFractionDigits: 0 });

export function bytes(count) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte"];
  let value = count;
  let index = 0;
  while (value >= 1000 && index < units.length - 1) {
    value /= 1000;
    index += 1;
  }
  const digits = index && value < 10 ? 1 : 0;
  const unitDisplay = index ? "short" : "long"; // "3 byte" isn't English
  return number(value, { style: "unit", unit: units[index], unitDisplay, maximumFractionDigits: digits });
}

export const dateTime = (text) =>
  format(Intl.DateTimeFormat, { dateStyle: "medium", timeStyle: "short" }).format(new Date(text));

export const day = (text) => format(Intl.DateTimeFormat, { dateStyle: "medium" }).format(new Date(text));

/** "14:00", of a moment in milliseconds. */
export const hourOf = (moment) => format(Intl.DateTimeFormat, { hour: "2-digit", minute: "2-digit" }).format(new Date(moment));

const STEPS = [
  [60, "second", 1],
  [3600, "minute", 60],
  [86400, "hour", 3600],
  [7 * 86400, "day", 86400],
];

/** "3 minutes ago"; a date if it is more than a week ago. */
export function ago(text) {
  const seconds = (Date.now() - new Date(text).getTime()) / 1000;
  if (Math.abs(seconds) < 45) return t("just now");
  const step = STEPS.find(([limit]) => Math.abs(seconds) < limit);
  if (!step) return day(text);
  return format(Intl.RelativeTimeFormat, { numeric: "auto" }).format(-Math.round(seconds / step[2]), step[1]);
}

const KINDS = [
  [/pdf$/, "PDF"],
  [/wordprocessingml|msword/, "Word"],
  [/spreadsheetml|ms-excel/, "Excel"],
  [/presentationml|ms-powerpoint/, "PowerPoint"],
  [/opendocument/, "OpenDocument"],
  [/rfc822|outlook|mbox/, "E-mail"],
  [/markdown/, "Markdown"],
  [/html/, "HTML"],
  [/^text\/plain/, "Text"],
  [/^image\//, "Picture"],
  [/epub/, "EPUB"],
  [/zip$|x-tar|gzip|bzip|x-xz/, "Archive"],
];

/** What people call files of a media type: "Word" rather than "application/vnd…". */
export function kindOf(mediaType) {
  const [, name] = KINDS.find(([pattern]) => pattern.test(mediaType)) ?? [];
  return name ? t(name) : mediaType.slice(mediaType.lastIndexOf("/") + 1).replace(/^x-/, "").toUpperCase();
}
