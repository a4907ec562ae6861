/** The accounts that the user can name: everybody for Platform Admins, else people in the user's teams and organizations. */

import { api, everything } from "../lib/api.js";
import { account, isPlatformAdmin } from "../lib/session.js";

const MOST = 500;

async function named(signal) {
  if (isPlatformAdmin.value) {
    const { items } = await api.users({ query: { limit: MOST }, signal });
    return items.map(({ id, username }) => [id, username]);
  }
  const [teams, organizations] = await Promise.all([everything(api.teams, { query: { mine: true }, signal }), api.myOrganizations({ signal })]);
  const lists = await Promise.allSettled([
    ...teams.map(({ id }) => api.team({ team_id: id, signal }).then((team) => team.members)),
    ...organizations.map(({ id }) => everything(api.members, { org_id: id, signal })),
  ]);
  return lists.flatMap(({ value = [] }) => value).map(({ user_id: id, username }) => [id, username]);
}

const inOrder = (found) => [...found].sort(([, one], [, other]) => one.localeCompare(other));

/** Pairs of id and name, by name, without the user. */
export async function knownPeople(signal) {
  const found = new Map(await named(signal));
  found.delete(Number(account.value?.sub));
  return inOrder(found);
}

/** The same with the user. */
export async function everybody(signal) {
  return inOrder(new Map([...(await named(signal)), [Number(account.value?.sub), account.value?.username ?? ""]]));
}
