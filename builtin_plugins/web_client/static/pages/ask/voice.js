/** Speaking instead of typing, and listening instead of reading, if this server supports it. */

import { html, signal, useEffect, useRef, useState } from "../../lib/html.js";
import { api } from "../../lib/api.js";
import { language, number, t } from "../../lib/words.js";
import { Button } from "../../parts/basics.js";
import { say, sayError } from "../../parts/layers.js";

const LONGEST_MS = 60_000;
const LONGEST_TEXT = 5_000;
const REFERENCES = /\s*\[\d+\]/g;

const offered = signal(null);
let asked = false;

/** What the server can do, requested once: {speaks, hears}, each with the languages. */
function useVoices() {
  useEffect(() => {
    if (asked) return;
    asked = true;
    Promise.allSettled([api.spokenLanguages(), api.heardLanguages()]).then(([spoken, heard]) => {
      offered.value = { speaks: spoken.value?.available ? spoken.value.languages : null, hears: heard.value?.available ? heard.value.languages : null };
    });
  }, []);
  return offered.value ?? {};
}

/** The code that fits the page's language, such as de or de-DE. */
const codeOf = (languages) => Object.keys(languages).find((code) => code.slice(0, 2) === language.value);

/** Records until it is pressed again, then passes the words to `onText`. */
export function Microphone({ onText }) {
  const { hears } = useVoices();
  const recorder = useRef(null);
  const [state, setState] = useState("idle");
  const [seconds, setSeconds] = useState(0);
  const left = useRef(false);
  useEffect(
    () => () => {
      left.current = true;
      recorder.current?.stop();
    },
    [],
  );
  useEffect(() => {
    if (state !== "recording") return undefined;
    setSeconds(0);
    const timer = setInterval(() => setSeconds((was) => was + 1), 1000);
    return () => clearInterval(timer);
  }, [state]);
  if (!hears || !navigator.mediaDevices?.getUserMedia || !("MediaRecorder" in window)) return null;
  const begin = async () => {
    try {
      recorder.current = await record();
    } catch {
      say(t("The microphone can’t be used. Allow it in the browser’s settings."), "bad");
      return;
    }
    if (left.current) recorder.current.stop(); // permission was given after the page was left
    setState("recording");
    const blob = await recorder.current.finished;
    if (left.current) return;
    setState("hearing");
    if (blob.size) await transcribe(blob, codeOf(hears)).then(onText, sayError);
    setState("idle");
  };
  const label = state === "recording" ? t("Stop recording") : t("Speak instead of typing");
  return html`${state === "recording" && html`<span class="muted" role="timer">${t("{n} s", { n: number(seconds) })}</span>`}
  <${Button} kind="quiet" small icon=${state === "recording" ? "stop" : "microphone"} aria-label=${label} aria-pressed=${state === "recording"} busy=${state === "hearing"}
    onClick=${state === "recording" ? () => recorder.current.stop() : begin} />`;
}

async function record() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const pieces = [];
  recorder.addEventListener("dataavailable", ({ data }) => pieces.push(data));
  const finished = new Promise((resolve) => {
    recorder.addEventListener("stop", () => {
      for (const track of stream.getTracks()) track.stop();
      resolve(new Blob(pieces, { type: recorder.mimeType }));
    });
  });
  recorder.start();
  const stop = () => recorder.state === "recording" && recorder.stop();
  setTimeout(stop, LONGEST_MS);
  return { finished, stop };
}

async function transcribe(blob, code) {
  const form = new FormData();
  form.append("file", blob, blob.type.includes("ogg") ? "speech.ogg" : "speech.webm");
  if (code) form.append("language", code);
  return (await api.hear({ body: form })).text;
}

let playing = null;

/** Play a sound to its end, or until `signal` stops it. */
async function play(blob, signal, onBegin) {
  signal.throwIfAborted();
  const address = URL.createObjectURL(blob);
  const sound = new Audio(address);
  const over = new Promise((resolve) => {
    sound.addEventListener("ended", resolve);
    signal.addEventListener("abort", resolve);
  });
  try {
    await sound.play();
    signal.throwIfAborted();
    onBegin();
    await over;
  } finally {
    sound.pause();
    URL.revokeObjectURL(address);
  }
}

/** Reads a text aloud; stops when pressed again, or when the page is left. */
export function Speaker({ text }) {
  const { speaks } = useVoices();
  const [state, setState] = useState("idle");
  const mine = useRef(null);
  const stop = () => {
    mine.current?.abort();
    setState("idle");
  };
  useEffect(() => stop, []);
  if (!speaks || !text) return null;
  const speak = async () => {
    playing?.();
    playing = stop;
    const { signal } = (mine.current = new AbortController());
    setState("busy");
    try {
      const body = { text: text.replace(REFERENCES, "").slice(0, LONGEST_TEXT), language: codeOf(speaks) ?? null, format: "mp3" };
      await play(await (await api.speak({ body, signal })).blob(), signal, () => setState("speaking"));
    } catch (error) {
      if (!signal.aborted) sayError(error);
    }
    if (!signal.aborted) setState("idle");
  };
  return html`<${Button} kind="quiet" small icon=${state === "speaking" ? "stop" : "speaker"} busy=${state === "busy"} aria-label=${state === "speaking" ? t("Stop reading aloud") : t("Read aloud")} onClick=${state === "speaking" ? stop : speak} />`;
}
