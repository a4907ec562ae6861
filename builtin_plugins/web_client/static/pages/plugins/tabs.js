/** The views of "Plugins". */

import { html } from "../../lib/html.js";
import { t } from "../../lib/words.js";
import { Tabs } from "../../parts/basics.js";

export const PluginTabs = ({ current }) => html`<${Tabs} label=${t("Plugins")} current=${current} tabs=${[
  { title: t("On this server"), to: "/plugins" },
  { title: t("Marketplace"), to: "/plugins/marketplace" },
  { title: t("Licenses"), to: "/plugins/licenses" },
]} />`;
