/** The views of "Operations". */

import { html } from "../../lib/html.js";
import { isAdmin, isPlatformAdmin } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Head, Tabs } from "../../parts/basics.js";

export function OperationsHead({ current, about, children }) {
  const tabs = [
    { title: t("Status"), to: "/operations" },
    { title: t("Models"), to: "/operations/models" },
    { title: t("Bundles"), to: "/operations/bundles" },
    isPlatformAdmin.value && { title: t("Logs"), to: "/operations/logs" },
    isAdmin.value && { title: t("Backups"), to: "/operations/backups" },
    isAdmin.value && { title: t("Settings"), to: "/operations/settings" },
  ].filter(Boolean);
  return html`<${Head} title=${t("Operations")} about=${about}>${children}<//><${Tabs} label=${t("Operations")} current=${current} tabs=${tabs} />`;
}
