/** What the user may do in an organization. Only hints for what to offer; the API decides. */

import { api } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { account, isAdministrator, isPlatformAdmin } from "../../lib/session.js";

const NONE = { members: false, roles: false, settings: false };
const ALL = { members: true, roles: true, settings: true };

/** Users who aren't members have no rights, and may not request them. */
function notAMember(error) {
  if (![403, 404].includes(error.status)) throw error;
  return { permissions: [] };
}

/** {members, roles, settings, error, reload}: all false until known. */
export function useRights(organization) {
  const me = account.value?.sub;
  const found = useResource(async (signal) => {
    if (isPlatformAdmin.value) return ALL;
    if (!organization) return NONE;
    const { permissions } = await api.effectivePermissions({ org_id: organization, user_id: me, signal }).catch(notAMember);
    const held = new Set(permissions.map((item) => item.permission_key));
    // Instance administrators act on members and settings everywhere (spec 2.4).
    const may = (key) => isAdministrator.value || held.has(key);
    return { members: may("org.members.manage"), settings: may("org.settings.manage"), roles: held.has("org.roles.manage") };
  }, [organization, me]);
  return { ...(found.data ?? NONE), error: found.error, reload: found.reload };
}
