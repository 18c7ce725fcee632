export { publishFile, removeFile, replaceFile } from './durable.ts';
export { readEpoch, tidyEpoch, writeEpoch } from './epoch.ts';
export { RecordFolders, UnreadableRecord } from './records.ts';
