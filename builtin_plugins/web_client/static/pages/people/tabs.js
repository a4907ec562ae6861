/** The views of "People". */

import { html } from "../../lib/html.js";
import { isPlatformAdmin } from "../../lib/session.js";
import { t } from "../../lib/words.js";
import { Tabs } from "../../parts/basics.js";

export const PeopleTabs = ({ current }) => html`<${Tabs} label=${t("People")} current=${current} tabs=${[
  { title: t("Teams"), to: "/people" },
  { title: t("Organizations"), to: "/people/organizations" },
  ...(isPlatformAdmin.value ? [{ title: t("Accounts"), to: "/people/accounts" }] : []),
]} />`;
