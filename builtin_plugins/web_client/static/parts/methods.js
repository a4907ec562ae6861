/** The methods of answering in plain words; the API's names stay for those that plugins add. */

import { t } from "../lib/words.js";

const METHODS = {
  standard: {
    title: "Standard",
    about: "Search once, answer from the best passages.",
    cost: "The model is asked once.",
  },
  hyde: {
    title: "Imagine an answer first",
    about: "Imagine an answer first, and search for what is like it.",
    cost: "The model is asked twice.",
  },
  self_rag: {
    title: "Check and search again",
    about: "Check each passage and the answer, and search again if they don’t hold.",
    cost: "The model is asked two to six times.",
  },
  auto: {
    title: "As the question needs",
    about: "Choose the method by the question.",
    cost: "The harder the question is, the more often the model is asked.",
  },
  corrective: {
    title: "Judge what was found",
    about: "Judge what was found, and search again if it is weak.",
    cost: "The model is asked two to four times.",
  },
  raptor: {
    title: "Search summaries, too",
    about: "Search summaries of documents as well as passages.",
    cost: "The model is asked once.",
  },
  conversational: {
    title: "Understand follow-up questions",
    about: "Read follow-up questions together with what was said before.",
    cost: "The model is asked once more for each of them.",
  },
};

/** What every question does by itself, where the server keeps conversations: no method to choose. */
const ALWAYS = "conversational";

/** The names of the methods that a question may choose. */
export const choosable = (methods) => Object.keys(methods).filter((name) => methods[name] && name !== ALWAYS);

/** A method's name for people. */
export const methodTitle = (name) => (METHODS[name] ? t(METHODS[name].title) : name);

/** What a method does, and what that costs; empty for one that a plugin adds. */
export const methodAbout = (name) => (METHODS[name] ? t(METHODS[name].about) : "");
export const methodCost = (name) => (METHODS[name] ? t(METHODS[name].cost) : "");
