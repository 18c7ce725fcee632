export { publishFile, removeFile, replaceFile } from './durable.ts';
export { readEpoch, writeEpoch } from './epoch.ts';
export { RecordFolders, UnreadableRecord } from './records.ts';
