/** Invites: sending one, and what to pass on if no e-mail is sent. */

import { html, useState } from "../../lib/html.js";
import { useAction } from "../../lib/resource.js";
import { addressOf } from "../../lib/router.js";
import { day, t } from "../../lib/words.js";
import { Badge, Button, Copyable, Notice } from "../../parts/basics.js";
import { Field, Form } from "../../parts/forms.js";
import { Dialog } from "../../parts/layers.js";

const TONES = { pending: "accent", accepted: "good", revoked: "neutral", expired: "neutral" };
const WORDS = { pending: "Pending", accepted: "Accepted", revoked: "Revoked", expired: "Expired" };

/** Where an invite is accepted: at the operator's address for this client, or else at the one it is open at. */
const linkOf = (issued) => issued.link ?? `${location.origin}${addressOf("/invites")}#token=${issued.token}`;

/** `roles` maps values to texts; `send({email, role})` returns the issued invite. */
export function InviteDialog({ title, roles, send, onSent, onClose }) {
  const [email, setEmail] = useState("");
  const [role, setRole] = useState("member");
  const [issued, setIssued] = useState(null);
  const action = useAction(async () => {
    setIssued(await send({ email, role }));
    onSent();
  });
  return html`<${Dialog} title=${title} onClose=${onClose}>
    ${
      issued
        ? html`<${Notice} tone="good" title=${issued.email_sent ? t("The invitation is on its way by e-mail.") : t("The invitation is ready. Pass it on yourself:")}>
            ${!issued.email_sent && html`<p>${t("The invited person opens the link and signs in or registers.")}</p>`}<//>
          ${!issued.email_sent && html`<${Copyable} text=${linkOf(issued)} label=${t("Invitation")} />`}
          <div class="form-actions"><${Button} kind="primary" onClick=${onClose}>${t("Done")}<//></div>`
        : html`<${Form} action=${action} submit=${t("Invite")} onCancel=${onClose}>
            <${Field} label=${t("E-mail")} type="email" value=${email} onInput=${setEmail} required autofocus error=${action.error?.fields?.email} />
            <${Field} as="select" label=${t("Role")} value=${role} onInput=${setRole}>${Object.entries(roles).map(([value, text]) => html`<option value=${value}>${text}</option>`)}<//>
          <//>`
    }
  <//>`;
}

export function Invites({ items, onRevoke }) {
  if (!items.length) return html`<p class="muted">${t("No invites.")}</p>`;
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${t("Invites")}><table>
    <thead><tr><th>${t("E-mail")}</th><th>${t("State")}</th><th>${t("Works until")}</th><th><span class="hidden">${t("Actions")}</span></th></tr></thead>
    <tbody>${items.map(
      (invite) => html`<tr key=${invite.id}><td>${invite.email}</td><td><${Badge} tone=${TONES[invite.status]}>${t(WORDS[invite.status])}<//></td><td>${day(invite.expires_at)}</td>
        <td class="right">${invite.status === "pending" && html`<${Button} small onClick=${() => onRevoke(invite)}>${t("Revoke")}<//>`}</td></tr>`,
    )}</tbody></table></div>`;
}
