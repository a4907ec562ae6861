/** Server-sent events over `fetch`, which can send a token and a body (WHATWG HTML, section 9.2). */

import { ApiError, cutOff } from "./http.js";
import { refusalOf } from "./refusals.js";
import { t } from "./words.js";

/** The events of a response, each as {name, data}; an `error` event throws. */
export async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((error) => {
        if (error.name === "AbortError") throw error;
        throw cutOff();
      });
      if (done) return;
      const blocks = (rest + value).replace(/\r\n?/g, "\n").split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (event?.name === "error") throw failed(event.data);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(block) {
  let name = "message";
  const data = [];
  for (const line of block.split("\n")) {
    const [field, ...rest] = line.split(":");
    const value = rest.join(":").replace(/^ /, "");
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  if (!data.length) return null;
  const text = data.join("\n");
  try {
    return { name, data: JSON.parse(text) };
  } catch {
    return { name, data: text };
  }
}

function failed(data) {
  const { status = 0, code = "stream_failed", detail } = data ?? {};
  if (typeof detail !== "string") return new ApiError(status, code, t("The answer could not be completed."));
  const { message, said } = refusalOf(status, code, detail);
  return new ApiError(status, code, message, { said });
}
