/** Which sites may show a published chat, in words. */

import { t } from "../../lib/words.js";

export function sitesOf({ allowed_origins: origins }) {
  if (origins === "*") return t("Every site may show it.");
  return origins || t("No site may show it yet.");
}
