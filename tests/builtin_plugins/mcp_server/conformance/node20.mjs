// The runner asks node:fs for globSync, which Node.js has since version 22; it needs it for other commands only.
import { register } from "node:module";
import fs from "node:fs";

if (!fs.globSync) register("./node20-hooks.mjs", import.meta.url);
