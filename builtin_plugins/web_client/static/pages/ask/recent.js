/** Recent conversations, in the navigation. */

export function Recent() {
  return null;
}
