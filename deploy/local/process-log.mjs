import { open } from 'node:fs/promises';

/**
 * What a process of ours has said, for somebody who waits for it: its log is one JSON object per line (`level`,
 * `message`, `detail`, `error`), and in between whatever Node wrote itself.
 */

/** Enough for any reason to be in it; a log is appended to for years. */
const LAST_BYTES = 1024 * 1024;

/**
 * @param {string} path
 * @param {number} [from] where this run of the process begins in it: what an earlier run said explains nothing
 * @returns {Promise<string>} whole lines; empty when it cannot be read
 */
export async function readLog(path, from = 0) {
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      // A log that was cut begins anew.
      const begin = from > size ? 0 : from;
      const start = Math.max(begin, size - LAST_BYTES);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start);
      const text = buffer.toString('utf8', 0, bytesRead);
      return start === begin ? text : text.slice(text.indexOf('\n') + 1);
    } finally {
      await file.close();
    }
  } catch {
    return '';
  }
}

/**
 * What says most about an end: of our own lines the last warning or error, else the last line. Unless Node itself wrote
 * that one: its last lines are a stack and its version.
 *
 * @param {string} text
 */
export function tellingLine(text) {
  const lines = linesOf(text);
  const last = lines.at(-1) ?? '';
  if (entryOf(last) === undefined) {
    return (lines.slice(-30).findLast((line) => /^\s*\w*Error\b/.test(line)) ?? last).trim() || 'it said nothing';
  }
  return lastWarning(text) ?? sentenceOf(last);
}

/**
 * @param {string} text
 * @returns {string | undefined} the last warning or error, as a sentence
 */
export function lastWarning(text) {
  const line = linesOf(text).findLast((each) => ['warn', 'error', 'fatal'].includes(entryOf(each)?.level));
  return line === undefined ? undefined : sentenceOf(line);
}

/** @param {string} text */
function linesOf(text) {
  return text.trimEnd().split('\n');
}

/**
 * @param {string} line
 * @returns {any} undefined when it is none of ours
 */
function entryOf(line) {
  if (!line.startsWith('{')) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** @param {string} line */
function sentenceOf(line) {
  const { message, detail, error } = entryOf(line);
  const parts = [message, detail, ...messagesOf(error)].filter((part) => typeof part === 'string' && part !== '');
  return parts.join(': ') || line;
}

/**
 * @param {any} error as it stands in a log
 * @returns {string[]} with those of its causes, which say what the outer ones only sum up
 */
function messagesOf(error) {
  return error?.message === undefined ? [] : [error.message, ...messagesOf(error.cause)];
}
