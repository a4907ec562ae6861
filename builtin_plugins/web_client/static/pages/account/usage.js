/** What the account and its organizations use, and how much they may use. */

import { html } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { ifThere } from "../../lib/http.js";
import { useResource } from "../../lib/resource.js";
import { bytes, number, t } from "../../lib/words.js";
import { Button, Loaded, Meter, Notice } from "../../parts/basics.js";

const NEAR = 0.9; // the share of a limit above which it is said before something is refused

const KINDS = {
  storage_bytes: { title: "Files", format: bytes },
  passages: { title: "Passages", format: number },
  queued_bytes: { title: "Files that wait to be read", format: bytes },
  streams: { title: "Answers on their way", format: number },
};

/** A server without knowledge bases, or without organizations, has none of these. */
async function load(signal) {
  const usage = await ifThere(api.usage({ signal }), null);
  if (!usage?.organizations.length) return { usage, names: new Map() };
  const organizations = await api.myOrganizations({ signal });
  return { usage, names: new Map(organizations.map(({ id, name }) => [id, name])) };
}

export function Usage() {
  const found = useResource(load);
  if (found.data && !found.data.usage) return null;
  return html`<section class="panel"><h2>${t("What you use")}</h2>
    <p class="muted">${t("When a limit is reached, further files are refused until some are deleted.")}</p>
    <${Loaded} of=${found} lines=${4}>${({ usage, names }) => html`<${Amounts} of=${usage} whose=${t("Your account")} />
      ${usage.organizations.map((one) => {
        const whose = names.get(one.organization_id) ?? t("Organization");
        return html`<h3>${whose}</h3><${Amounts} of=${one} whose=${whose} />`;
      })}`}<//>
  </section>`;
}

const Amounts = ({ of, whose }) => html`<dl class="facts">
  ${Object.entries(KINDS).filter(([kind]) => of[kind]).map(([kind, { title, format }]) => {
    const { used, limit } = of[kind];
    const amount = limit === null ? t("{used}, without a limit", { used: format(used) }) : t("{used} of {limit}", { used: format(used), limit: format(limit) });
    return html`<dt>${t(title)}</dt><dd class="stack close"><span>${amount}</span>
      ${limit !== null && html`<${Meter} role="meter" value=${Math.min(used, limit)} max=${limit} text=${amount} label=${`${whose}: ${t(title)}`} />`}</dd>`;
  })}
</dl>`;

/** Said above a list of documents: a limit of the account or of the knowledge base's organization is near. */
export function NearLimit({ organization }) {
  const found = useResource((signal) => api.usage({ signal }));
  if (!found.data) return null;
  const { organizations, ...mine } = found.data;
  const theirs = organizations.find((one) => one.organization_id === organization);
  const isNear = ([kind, amount]) => kind in KINDS && amount.limit !== null && amount.used >= NEAR * amount.limit;
  if (![mine, theirs ?? {}].some((of) => Object.entries(of).some(isNear))) return null;
  return html`<${Notice} tone="warn" title=${t("There is little room left")} action=${html`<${Button} small to="/account">${t("What you use")}<//>`}>
    ${t("When a limit is reached, further files are refused until some are deleted.")}<//>`;
}
