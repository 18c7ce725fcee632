export { parseLines } from './lines.ts';
export { diffLines, parseRuleFile, renderRuleFile, ruleFileFaults, ruleLines } from './rule-file.ts';
export type { RuleSet } from './rule-file.ts';
