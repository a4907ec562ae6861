/** An invite that waits until its reader has signed in. */

const KEPT = "platform.invite";

export const pendingInvite = () => sessionStorage.getItem(KEPT);
export const keepInvite = (token) => sessionStorage.setItem(KEPT, token);
export const forgetInvite = () => sessionStorage.removeItem(KEPT);

/** Where a new session begins. */
export const firstView = () => (pendingInvite() ? "/invites" : "/");
