import { parseSync, Visitor } from 'oxc-parser'

type CallExpression = Parameters<NonNullable<ConstructorParameters<typeof Visitor>[0]['CallExpression']>>[0]
type Expression = CallExpression['callee'] | CallExpression['arguments'][number]

/**
 * The full titles of the tests in a TypeScript source: the titles of its groups, then its own. The values of a template
 * are left out; comments, imports and expectations are not titles.
 */
export function testTitles(path: string, source: string): string[] {
  const groups: { readonly title: string; readonly start: number; readonly end: number }[] = []
  const tests: { readonly title: string; readonly at: number }[] = []
  new Visitor({
    CallExpression({ callee, arguments: [first], start, end }) {
      const title = first === undefined ? undefined : textOf(first)
      if (title === undefined) return
      const kind = kindOf(callee)
      if (kind === 'group') groups.push({ title, start, end })
      if (kind === 'test') tests.push({ title, at: start })
    },
  }).visit(parseSync(path, source).program)
  return tests.map(({ title, at }) => {
    const around = groups.filter(({ start, end }) => start < at && at < end).toSorted((a, b) => a.start - b.start)
    return [...around.map((group) => group.title), title].join(' > ')
  })
}

/** `test`, `it`, `describe`, also as `test.each(...)`, `test.skipIf(...)` and, of the conformance tests, `at.test`. */
function kindOf(callee: Expression): 'test' | 'group' | undefined {
  switch (callee.type) {
    case 'Identifier':
      if (callee.name === 'describe') return 'group'
      return callee.name === 'test' || callee.name === 'it' ? 'test' : undefined
    case 'MemberExpression':
      if (callee.object.type === 'Identifier' && callee.object.name === 'at') {
        return callee.property.type === 'Identifier' && callee.property.name === 'test' ? 'test' : undefined
      }
      return kindOf(callee.object)
    case 'CallExpression':
      return kindOf(callee.callee)
    case 'TaggedTemplateExpression':
      return kindOf(callee.tag)
    default:
      return undefined
  }
}

function textOf(argument: Expression): string | undefined {
  if (argument.type === 'Literal') return typeof argument.value === 'string' ? argument.value : undefined
  if (argument.type !== 'TemplateLiteral') return undefined
  return argument.quasis.map(({ value }) => value.cooked ?? value.raw).join('…')
}
