export { cidrFault } from './cidr.ts';
export { HbaSyntax, parseLines } from './lines.ts';
export type { HbaLine } from './lines.ts';
export { diffLines, parseRuleFile, renderRuleFile, ruleFileFaults, ruleLines } from './rule-file.ts';
export type { RuleDifference, RuleFile, RuleSet } from './rule-file.ts';
