/**
 * B007: one quoting function, everywhere. Every piece of SQL in the sources is looked at: what is put into it is quoted by
 * `quoteIdentifier` or `quoteLiteral`, or is made of constants, or stands in the list below with its reason.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Put into SQL without quoting, and why that is right. */
const REVIEWED: readonly { readonly file: string; readonly expression: string; readonly why: string }[] = [
  { file: 'libs/effects/src/roles/act.ts', expression: 'connectionLimit', why: 'a number' },
  { file: 'libs/effects/src/publish-database/act.ts', expression: 'connectionLimit', why: 'a number' },
  { file: 'libs/fencing/src/guarded-batch.ts', expression: 'claimNumber', why: 'a number' },
  { file: 'libs/fencing/src/guarded-batch.ts', expression: 'attempt', why: 'a number' },
  { file: 'libs/catalog/src/listener.ts', expression: 'this.#channel', why: 'a name that programs have as a constant' },
];

const QUOTING = new Set(['quoteIdentifier', 'quoteLiteral']);
const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
/** How a statement of SQL begins, told from prose that begins with the same verb. */
const STATEMENT = new RegExp(
  [
    'select\\s',
    'insert\\s+into\\b',
    'update\\s+\\S+\\s+(\\w+\\s+)?set\\b',
    'delete\\s+from\\b',
    'with\\s+\\w+\\s+as\\b',
    '(create|alter|drop)\\s+(unique\\s+)?(role|user|database|schema|table|extension|index|owned|default|system|type|function|policy)\\b',
    '(grant|revoke)\\b.*\\b(to|from|on)\\b',
    'comment\\s+on\\b',
    'reassign\\s+owned\\b',
    'set\\s+(local\\s+|session\\s+)?[a-z_.]+\\s*(=|to)\\s',
    'truncate\\s',
    '(un)?listen\\s',
    'notify\\s',
    'copy\\s',
    'rollback\\s+to\\b',
    'savepoint\\s',
  ]
    .map((beginning) => `(^|\\n)\\s*(/\\*.*?\\*/\\s*)?${beginning}`)
    .join('|'),
  'is',
);

function isReviewed(file: string, expression: string): boolean {
  return REVIEWED.some((one) => one.file === file && one.expression === expression);
}

interface Raw {
  readonly line: number;
  readonly expression: string;
}

/** Expressions that get into SQL without having been quoted. */
function rawInSql(source: string, fileName = 'example.ts'): readonly Raw[] {
  const file = ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest, true);
  const raw: Raw[] = [];
  const inspect = (expression: ts.Expression): void => {
    if (isSafe(expression, new Set())) return;
    const line = file.getLineAndCharacterOfPosition(expression.getStart()).line + 1;
    if (!raw.some((other) => other.line === line && other.expression === expression.getText()))
      raw.push({ line, expression: expression.getText() });
  };
  const visit = (node: ts.Node): void => {
    if (isText(node) && !isText(node.parent) && isSql(node)) for (const part of partsOf(node)) inspect(part);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return raw;

  /** A text made of pieces: a template, or a sum that has one or a string in it. */
  function isText(node: ts.Node): node is ts.Expression {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) return true;
    return isSum(node) && [node.left, node.right].some(isText);
  }

  function isSum(node: ts.Node): node is ts.BinaryExpression {
    return ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken;
  }

  function isSql(node: ts.Expression): boolean {
    return STATEMENT.test(staticText(node)) || isQueryArgument(node);
  }

  /** Whatever is handed to `query` is SQL, however it begins. */
  function isQueryArgument(node: ts.Expression): boolean {
    const call = node.parent;
    return (
      ts.isCallExpression(call) &&
      call.arguments[0] === node &&
      ts.isPropertyAccessExpression(call.expression) &&
      call.expression.name.text === 'query'
    );
  }

  function staticText(node: ts.Expression): string {
    if (ts.isStringLiteralLike(node)) return node.text;
    if (ts.isTemplateExpression(node))
      return node.head.text + node.templateSpans.map((span) => `x${span.literal.text}`).join('');
    return isSum(node) ? staticText(node.left) + staticText(node.right) : 'x';
  }

  function partsOf(node: ts.Expression): readonly ts.Expression[] {
    if (ts.isStringLiteralLike(node)) return [];
    if (ts.isTemplateExpression(node)) return node.templateSpans.map((span) => span.expression);
    return isSum(node) ? [node.left, node.right].flatMap((side) => (isText(side) ? partsOf(side) : [side])) : [node];
  }

  function isSafe(node: ts.Expression, seen: ReadonlySet<ts.Node>): boolean {
    // What was made up here stands for a number, and has no text.
    if (seen.has(node) || node.pos < 0 || isReviewed(fileName, node.getText())) return true;
    const within = new Set([...seen, node]);
    const safe = (one: ts.Expression): boolean => isSafe(one, within);
    if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return safe(node.expression);
    if (ts.isStringLiteralLike(node) || ts.isNumericLiteral(node)) return true;
    if (ts.isTemplateExpression(node)) return node.templateSpans.every((span) => safe(span.expression));
    if (isSum(node)) return safe(node.left) && safe(node.right);
    if (ts.isConditionalExpression(node)) return safe(node.whenTrue) && safe(node.whenFalse);
    if (ts.isArrayLiteralExpression(node))
      return node.elements.every((element) => safe(ts.isSpreadElement(element) ? element.expression : element));
    if (ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node))
      return ts.isIdentifier(node.expression) && CONSTANT.test(node.expression.text);
    if (ts.isIdentifier(node)) return CONSTANT.test(node.text) || isSafeName(node, within);
    return ts.isCallExpression(node) && isSafeCall(node, within);
  }

  function isSafeCall(call: ts.CallExpression, seen: ReadonlySet<ts.Node>): boolean {
    const { expression: callee } = call;
    if (ts.isIdentifier(callee)) return QUOTING.has(callee.text) || returnsSafe(callee.text, seen);
    if (!ts.isPropertyAccessExpression(callee)) return false;
    switch (callee.name.text) {
      case 'join':
        return isSafe(callee.expression, seen);
      case 'filter':
        return isSafe(callee.expression, seen);
      case 'map':
      case 'flatMap': {
        const [callback] = call.arguments;
        if (callback === undefined) return false;
        if (ts.isIdentifier(callback)) return QUOTING.has(callback.text);
        return ts.isArrowFunction(callback) && !ts.isBlock(callback.body) && isSafe(callback.body, seen);
      }
      default:
        return false;
    }
  }

  /** A function of the same file that returns nothing but safe parts. */
  function returnsSafe(name: string, seen: ReadonlySet<ts.Node>): boolean {
    const declared = file.statements.find(
      (statement): statement is ts.FunctionDeclaration =>
        ts.isFunctionDeclaration(statement) && statement.name?.text === name,
    );
    const returned: (ts.Expression | undefined)[] = [];
    const collect = (node: ts.Node): void => {
      if (ts.isReturnStatement(node)) returned.push(node.expression);
      else if (!ts.isFunctionLike(node)) ts.forEachChild(node, collect);
    };
    if (declared?.body !== undefined) ts.forEachChild(declared.body, collect);
    return returned.length > 0 && returned.every((value) => value !== undefined && isSafe(value, seen));
  }

  /** A variable that is made of safe parts, or a parameter that is given such everywhere in the file. */
  function isSafeName(name: ts.Identifier, seen: ReadonlySet<ts.Node>): boolean {
    const values = valuesOf(name);
    return values.length > 0 && values.every((value) => value !== undefined && isSafe(value, seen));
  }

  /** What the nearest declaration of a name can stand for; an undefined one is anybody's guess. */
  function valuesOf(name: ts.Identifier): readonly (ts.Expression | undefined)[] {
    for (let scope: ts.Node = name.parent; ; scope = scope.parent) {
      if (ts.isFunctionLike(scope))
        for (const parameter of scope.parameters) {
          if (parameter.name.getText() === name.text) return argumentsFor(parameter);
          if (bindsName(parameter.name, name)) return [undefined];
        }
      if (ts.isBlock(scope) || ts.isSourceFile(scope))
        for (const declaration of scope.statements
          .filter(ts.isVariableStatement)
          .flatMap((one) => [...one.declarationList.declarations])) {
          if (declaration.name.getText() === name.text) return [declaration.initializer];
          if (bindsName(declaration.name, name)) return [undefined];
        }
      if (ts.isSourceFile(scope)) return [];
    }
  }

  function bindsName(pattern: ts.BindingName, name: ts.Identifier): boolean {
    if (ts.isIdentifier(pattern)) return false;
    return pattern.elements.some(
      (element) =>
        ts.isBindingElement(element) && (element.name.getText() === name.text || bindsName(element.name, name)),
    );
  }

  function argumentsFor(parameter: ts.ParameterDeclaration): readonly (ts.Expression | undefined)[] {
    if (parameter.type?.kind === ts.SyntaxKind.NumberKeyword) return [ts.factory.createNumericLiteral(0)];
    const owner = parameter.parent;
    if (ts.isFunctionTypeNode(owner)) return [];
    const position = owner.parameters.indexOf(parameter);
    const caller = owner.parent;
    // The element of a list that is gone through.
    if (ts.isCallExpression(caller) && ts.isPropertyAccessExpression(caller.expression) && position === 0)
      return [caller.expression.expression];
    const named = ts.isFunctionDeclaration(owner)
      ? owner.name
      : ts.isVariableDeclaration(caller)
        ? caller.name
        : undefined;
    const calls: (ts.Expression | undefined)[] = [];
    const collect = (node: ts.Node): void => {
      if (ts.isCallExpression(node) && named !== undefined && node.expression.getText() === named.getText())
        calls.push(node.arguments[position]);
      ts.forEachChild(node, collect);
    };
    collect(file);
    return calls.length === 0 ? [undefined] : calls;
  }
}

describe('the look at the sources sees', () => {
  test.each([
    ['an identifier in a statement', 'client.query(`drop role ${name}`)', 'name'],
    ['one in quotes, which a quote in the name would end', 'client.query(`drop role "${name}"`)', 'name'],
    ['a value in quotes', "const s = `select 1 from t where a = '${value}'`", 'value'],
    ['a sum', "const s = 'drop database ' + name", 'name'],
    ['one that is quoted in one place and raw in another', 'f(`alter role ${quoteIdentifier(a)} in role ${b}`)', 'b'],
    [
      'default privileges',
      'f(`alter default privileges for role ${names.owner} grant select on tables to x`)',
      'names.owner',
    ],
    ['a variable that is not quoted', 'const role = names.owner; f(`comment on role ${role} is null`)', 'role'],
    ['a parameter that somebody gives raw', 'const f = (role: string) => `grant a to ${role}`; f(name)', 'role'],
    ['a list that is not quoted', "f(`revoke all on database x from ${names.join(', ')}`)", "names.join(', ')"],
    [
      'a function that returns what it was given',
      'f(`select ${part(x)}`); function part(a: A) { return a.name; }',
      'part(x)',
    ],
    ['a function of somebody else’s', 'f(`set role to ${escape(name)}`)', 'escape(name)'],
    ['a second line', 'f(`begin;\n  drop owned by ${roles}`)', 'roles'],
    ['what is handed to query in pieces', 'client.query(`${verb} something`)', 'verb'],
  ])('%s', (_what, source, expression) => {
    expect(rawInSql(source).map((raw) => raw.expression)).toEqual([expression]);
  });

  test.each([
    ['what is quoted', 'client.query(`drop role ${quoteIdentifier(name)}`)'],
    ['a list that is quoted', "f(`drop role ${names.map(quoteIdentifier).join(', ')}`)"],
    ['constants', "const A = 'x'; f(`select ${A} from ${TABLES.one}`)"],
    ['variables made of quoted parts', 'const a = quoteIdentifier(b); f(`grant ${a} to ${c ? a : quoteLiteral(d)}`)'],
    ['parameters that are always given quoted', 'const g = (a: string) => `grant x to ${a}`; g(quoteIdentifier(n))'],
    [
      'what a function of the file has quoted',
      'f(`select ${part(x)}`); function part(a: A) { return `${quoteLiteral(a)}, 1`; }',
    ],
    ['numbers', 'const g = (limit: number) => `alter role x connection limit ${limit}`; g(n)'],
    ['prose', 'throw new Error(`the role ${name} was dropped; select another, or grant it: ${why}`)'],
    ['parameters of a statement', "client.query('select 1 from t where a = $1', [name])"],
  ])('nothing in %s', (_what, source) => {
    expect(rawInSql(source)).toEqual([]);
  });
});

function* sources(folder: string): Iterable<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* sources(path);
    else if (entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts')) yield relative(ROOT, path);
  }
}

test('B007: nothing gets into SQL but through the quoting functions, in no library and no program', () => {
  const files = ['libs', 'apps']
    .flatMap((folder) => [...sources(join(ROOT, folder))])
    .filter((file) => !file.startsWith('libs/testing/'));
  const found = files.flatMap((file) =>
    rawInSql(readFileSync(join(ROOT, file), 'utf8'), file).map((raw) => ({ file, ...raw })),
  );
  expect(found).toEqual([]);
  // The look does see SQL: the effects are full of it.
  expect(files.filter((file) => STATEMENT.test(readFileSync(join(ROOT, file), 'utf8'))).length).toBeGreaterThan(15);
});
