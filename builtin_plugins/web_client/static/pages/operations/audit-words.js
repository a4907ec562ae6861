/** What the audit log says, in plain words: actions by their last part, kinds of things, and where these are. */

import { t } from "../../lib/words.js";

const ACTIONS = {
  activated: { title: "Activated" },
  added: { title: "Added" },
  assigned: { title: "Role given" },
  called: { title: "Called" },
  cancelled: { title: "Cancelled" },
  changed: { title: "Changed" },
  claim_refused: { title: "Claim refused" },
  code_issued: { title: "Code issued" },
  completed: { title: "Completed" },
  configured: { title: "Settings changed" },
  confirmed: { title: "Confirmed" },
  connected: { title: "Connected" },
  constrained: { title: "Limits changed" },
  counterparts: { title: "Counterparts changed" },
  created: { title: "Created" },
  deactivated: { title: "Deactivated" },
  default_set: { title: "Default chosen" },
  deleted: { title: "Deleted" },
  demotion_refused: { title: "Last administrator kept" },
  disabled: { title: "Turned off" },
  disconnected: { title: "Disconnected" },
  drill_requested: { title: "Trial restore requested" },
  enabled: { title: "Turned on" },
  ended: { title: "Ended" },
  exported: { title: "Exported" },
  granted: { title: "Role given" },
  groups_changed: { title: "Groups changed" },
  imported: { title: "Imported" },
  installed: { title: "Installed" },
  key_changed: { title: "Key changed" },
  key_renewed: { title: "Key renewed" },
  member_added: { title: "Member added" },
  member_removed: { title: "Member removed" },
  member_role_changed: { title: "Member’s role changed" },
  member_suspended: { title: "Member suspended" },
  member_unsuspended: { title: "Suspension lifted" },
  password_changed: { title: "Password changed" },
  password_reset: { title: "Password reset" },
  pull_requested: { title: "Download started" },
  push_address: { title: "New address for pushes" },
  reactivated: { title: "Reactivated" },
  receipt: { title: "Deleted for good" },
  redeemed: { title: "Accepted" },
  refused: { title: "Refused" },
  registered: { title: "Registered" },
  removed: { title: "Removed" },
  restore_ordered: { title: "Restore requested" },
  restore_requested: { title: "Restore requested" },
  restored: { title: "Taken back" },
  revoked: { title: "Revoked" },
  role_changed: { title: "Role changed" },
  seat_assigned: { title: "Seat assigned" },
  seat_removed: { title: "Seat taken away" },
  sessions_ended: { title: "Sessions ended" },
  set: { title: "Stored" },
  shared: { title: "Sharing changed" },
  signed_out: { title: "Signed out everywhere" },
  stored: { title: "Stored" },
  synced: { title: "Taken over from the sign-in" },
  tier_changed: { title: "Tier changed" },
  tools_deactivated: { title: "Tools turned off" },
  tools_synced: { title: "Tools read again" },
  trashed: { title: "Moved to the trash" },
  unassigned: { title: "Role taken away" },
  uninstalled: { title: "Uninstalled" },
  updated: { title: "Changed" },
  uploaded: { title: "Uploaded" },
  wheel_uploaded: { title: "Package uploaded" },
  written: { title: "Written" },
};

const KINDS = {
  access_token: { title: "Key for programs" },
  account: { title: "Account" },
  backup: { title: "Backup" },
  bundle: { title: "Bundle" },
  category: { title: "Category" },
  dependency: { title: "Dependency" },
  document: { title: "Document" },
  invite: { title: "Invitation" },
  job: { title: "Background job" },
  knowledge_base: { title: "Knowledge base" },
  license: { title: "License" },
  license_order: { title: "Order of licenses" },
  listing: { title: "Listing" },
  model: { title: "Model" },
  model_server: { title: "Model server" },
  organization: { title: "Organization" },
  pipeline: { title: "Pipeline" },
  plugin: { title: "Plugin" },
  published_chat: { title: "Published chat" },
  role: { title: "Role" },
  secret: { title: "Secret" },
  service: { title: "Service" },
  setup_code: { title: "Setup code" },
  source: { title: "Source" },
  team: { title: "Team" },
  tool: { title: "Tool" },
};

/** An action in words; what has none is shown as the API names it. */
export const actionOf = ({ action }) => {
  const known = ACTIONS[action.slice(action.lastIndexOf(".") + 1)];
  return known ? t(known.title) : action;
};

/** The kinds of things by name: pairs of what the API calls them and their name. */
export const kinds = () => Object.entries(KINDS).map(([kind, { title }]) => [kind, t(title)]).sort(([, one], [, other]) => one.localeCompare(other));

export const kindOf = ({ target_type: kind }) => (KINDS[kind] ? t(KINDS[kind].title) : kind);

/** What the target is or was called. */
export const nameOf = (entry) => entry.target_name ?? entry.after_state?.name ?? entry.before_state?.name ?? entry.target_id ?? "";

/** Where the client shows the target; none if it is gone, hidden from the reader, or has no page. */
export function placeOf({ target_type: kind, target_id: id, target_name: name, target_within: within }) {
  if (kind === "plugin") return `/plugins/${encodeURIComponent(id)}`;
  if (!name) return null;
  const places = {
    account: `/people/accounts?q=${encodeURIComponent(name)}`,
    document: `/documents/${within}/${id}`,
    knowledge_base: `/documents/${id}`,
    organization: `/people/organizations/${id}`,
    pipeline: "/pipelines",
    team: `/people/teams/${id}`,
  };
  return places[kind] ?? null;
}
