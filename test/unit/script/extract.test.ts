import { describe, expect, test } from 'vitest'
import { findPlan, findScript } from '../../../src/script/extract.ts'
import { Random } from '../../support/random.ts'

const F = '```'
const CODE = 'x = price(sku="a")\nemit_result(x)'

/** Answers by their peculiarity; each contains {@link CODE} and no other code that may run. */
const WRAPPED: Readonly<Record<string, string>> = {
  'a fence named python': `${F}python\n${CODE}\n${F}`,
  'a fence named py': `${F}py\n${CODE}\n${F}`,
  'a fence named Python3': `${F}Python3\n${CODE}\n${F}`,
  'a fence with a title': `${F}python title="a.py" {1,2}\n${CODE}\n${F}`,
  'a fence with an attribute': `${F}{python}\n${CODE}\n${F}`,
  'a fence without a name': `${F}\n${CODE}\n${F}`,
  'a fence with a space before its name': `${F} python\n${CODE}\n${F}`,
  'a fence of tildes': `~~~python\n${CODE}\n~~~`,
  'a fence of five': `${F}${'`'}${'`'}python\n${CODE}\n${F}${'`'}${'`'}`,
  'a fence named after something else': `${F}text\n${CODE}\n${F}`,
  'a fence that does not end': `Here it is:\n${F}python\n${CODE}`,
  'words around a fence': `Sure! Here is the script:\n\n${F}python\n${CODE}\n${F}\n\nIt adds up, as you asked.`,
  'a fence in a list': `1. Do this:\n\n   ${F}python\n   x = price(sku="a")\n   emit_result(x)\n   ${F}\n2. Done.`,
  'a fence with indented code': `${F}python\n    x = price(sku="a")\n    emit_result(x)\n${F}`,
  'a bash block beside': `${F}bash\npip install pandas\n${F}\n${F}python\n${CODE}\n${F}\n${F}bash\nls\n${F}`,
  'an output block behind': `${F}python\n${CODE}\n${F}\nIt prints:\n${F}\n5 and a lot more than the script itself has to say\n${F}`,
  'a sketch before': `${F}python\nfor a in something_long_and_wrong:\n    print(a, a, a, a, a)\n${F}\nBetter:\n${F}python\n${CODE}\n${F}`,
  'two that emit': `${F}python\nemit_result("first, and longer than the second one is, by far")\n${F}\nNo:\n${F}python\n${CODE}\n${F}`,
  'a named sketch and an unnamed answer': `${F}python\nx = 1\n${F}\n${F}\n${CODE}\n${F}`,
  'the mission tag': `<execution-code>\n${CODE}\n</execution-code>`,
  'a tag with attributes': `<execution-code lang="python">\n${CODE}\n</execution-code>`,
  'a tag in capitals': `<CODE>\n${CODE}\n</CODE>`,
  'a tag that does not end': `<execution-code>\n${CODE}`,
  'a tag on the same lines': `<execution-code>${CODE}</execution-code>`,
  'CDATA in a tag': `<script><![CDATA[\n${CODE}\n]]></script>`,
  'CDATA that does not end': `<script><![CDATA[\n${CODE}\n`,
  'a fence in a tag': `<execution-code>\n${F}python\n${CODE}\n${F}\n</execution-code>`,
  'words and a fence in a tag': `<execution-code>\nThe script:\n${F}python\n${CODE}\n${F}\n</execution-code>`,
  'words around a tag': `Let me see.\n<execution-code>\n${CODE}\n</execution-code>\nThat is all.`,
  'a tag in the words before a fence': `<code>emit_result</code> ends it:\n${F}python\n${CODE}\n${F}`,
  'two tags': `<code>\nemit_result("a sketch that is longer")\n</code>\nBetter so:\n<code>\n${CODE}\n</code>`,
  'a JSON object': JSON.stringify({ thought: 'easy', script: CODE }),
  'a JSON object with a fence in it': JSON.stringify({ code: `${F}python\n${CODE}\n${F}` }, null, 2),
  'a JSON object in a fence': `${F}json\n${JSON.stringify({ python: CODE })}\n${F}`,
  'the last of 300 JSON objects in fences': [
    ...Array.from({ length: 299 }, () => '{"code": "x"}'),
    JSON.stringify({ python: CODE }),
  ]
    .map((json) => `${F}json\n${json}\n${F}\n`)
    .join(''),
  'nothing around it': CODE,
  'blank lines around it': `\n \n\t\n${CODE}\n \n`,
  'an indented paragraph': `    x = price(sku="a")\n    emit_result(x)\n`,
  'words around code without a fence': `Here is what you want:\n\n${CODE}\n\nThis works because:\n   1. it is short\n   2. it is right`,
  'reasoning before it': `<think>\nI could write\n${F}python\nemit_result("no")\n${F}\n</think>\n${F}python\n${CODE}\n${F}`,
  'thoughts twice': `<thinking>a</thinking>\n<reasoning>b</reasoning>\n${CODE}`,
  'thoughts whose beginning was in the prompt': `So I call it.\n${F}python\nemit_result("no")\n${F}\nFine.</think>\n${CODE}`,
  'a byte order mark': `\uFEFF${CODE}`,
  'the line ends of Windows': `${F}python\r\n${CODE.replaceAll('\n', '\r\n')}\r\n${F}\r\n`,
  'the line ends of an old Mac': CODE.replaceAll('\n', '\r'),
  'prompts of an interactive Python': `${F}pycon\n>>> x = price(sku="a")\n>>> emit_result(x)\n${F}`,
  'prompts with their output': `>>> x = price(sku="a")\n5\n>>> emit_result(x)\nNone`,
}

const GUESSED: ReadonlySet<string> = new Set([
  'words around code without a fence',
  'thoughts whose beginning was in the prompt',
])

describe('the script is found (OR-12)', () => {
  test.each(Object.entries(WRAPPED))('%s', (name, answer) => {
    expect(findScript(answer)).toEqual({ script: CODE, ...(GUESSED.has(name) ? { whole: answer } : {}) })
  })
})

describe('without a fence, a tag or JSON, a script is a guess that Python must confirm (OR-12)', () => {
  test.each([
    ['1/0\nemit_result(1)', 'emit_result(1)'],
    ["{k: charge(amount=k) for k in [1]}\nemit_result('charged')", "emit_result('charged')"],
    ['emit_result(1)\n[charge(k) for k in keys]', 'emit_result(1)'],
    ['{charge(k) for k in keys}', null],
    ['I cannot do that.', null],
  ])('%j', (whole, script) => {
    expect(findScript(`\n<think>First,</think>\n${whole}\n\n`)).toEqual({ script, whole })
  })
})

test('a fence that may be in a string of several lines is a guess, too (OR-12)', () => {
  const whole = `text = "\\\n${F}python\\\nemit_result(2)\\\n${F}"\nemit_result(text)`
  expect(findScript(whole)).toMatchObject({ whole })
  expect(findScript(`${F}python\n${whole}\n${F}`)).not.toHaveProperty('whole')
})

describe('a script stays unchanged, whatever its strings contain (OR-12)', () => {
  const scripts: Readonly<Record<string, string>> = {
    'a fence in a string': `text = """\n${F}\nnot the end\n${F}\n"""\nemit_result(text)`,
    'a fence in a string of single quotes': `text = '''\n${F}python\nx\n${F}\n'''\nemit_result(text)`,
    'a fence behind an escaped quote': `text = """\n\\"""\n${F}\n"""\nemit_result(text)`,
    'HTML in a string': `html = """\n<code>x</code>\n<script>\ny\n</script>\n"""\nemit_result(html)`,
    'tags of thoughts in a string': 'emit_result("<think>a</think>".count("<"))',
    'a comment with quotes': `# it's """ here\nx = 1\nemit_result(x)`,
    'two values at once first': 'a, b = 1, 2\nemit_result(a + b)',
    'a target in brackets first': '(a, *b), c["my key"] = f(), 2\nemit_result(a)',
    'a docstring first': '"""Adds up."""\n\ntotal = 1\nemit_result(total)',
    'a comment first': '# Adds up\n\ntotal = 1\nemit_result(total)',
    'a loop first': 'for sku in ["a", "b"]:\n    emit_intermediate(sku, price(sku=sku))\nemit_result(None)',
    'a function that is called last': 'def main():\n    return 1\n\n\nemit_result(main())',
    'a call over several lines': 'emit_result({\n"a": 1,\n    "b": 2,\n})',
    'blank lines and tabs within': 'if True:\n\n\tx = 1\n\n\temit_result(x)',
    'a trailing comment': 'emit_result(1)\n# done',
    'non-ASCII': 'emit_result("İstanbul ß 😀 \u2028")',
  }
  test.each(Object.entries(scripts))('%s', (_, script) => {
    expect(findScript(script)).toEqual({ script })
    expect(findScript(`Here:\n${F}python\n${script}\n${F}\nDone.`)).toEqual({ script })
    expect(findScript(`Here:\n<execution-code>\n${script}\n</execution-code>\nDone.`)).toEqual({ script })
  })

  test('an unterminated string does not extend its block', () => {
    expect(findScript(`${F}python\nx = """\n${F}\nThat is it.`)).toEqual({ script: 'x = """' })
    expect(findScript(`x = """ is what I would write:\n${F}python\nemit_result(1)\n${F}`)).toEqual({
      script: 'emit_result(1)',
      whole: `x = """ is what I would write:\n${F}python\nemit_result(1)\n${F}`,
    })
  })

  test('a string at the margin is not shifted when the block is indented', () => {
    const answer = `- So:\n  ${F}python\n  x = """\na\n  """\n  emit_result(x)\n  ${F}`
    expect(findScript(answer)).toEqual({ script: 'x = """\na\n"""\nemit_result(x)' })
  })

  test('a doctest may have several lines', () => {
    expect(findScript('>>> for i in range(2):\n...     print(i)\n...\n0\n1\n>>> emit_result(1)')).toEqual({
      script: 'for i in range(2):\n    print(i)\n\nemit_result(1)',
    })
  })
})

describe('an answer without a script (OR-12)', () => {
  const none: Readonly<Record<string, string>> = {
    'a sentence': 'I am sorry, I cannot do that.',
    'sentences that begin like code':
      'if you want that, say so:\nfor the following reasons:\nimport the data first\nreturn later',
    'a heading and a list': '# Answer\n\n- one\n- two',
    'a shell command': `Run this:\n${F}bash\npip install pandas\n${F}`,
    'a JSON object without a script': '{"answer": 5}',
    'an empty block': `${F}python\n\n${F}`,
    'thoughts that never end': `<think>\nI could write\n${F}python\nemit_result(1)\n${F}`,
    'thoughts alone': '<think>\nemit_result(1)\n</think>\n',
    'a tag with nothing in it': '<execution-code></execution-code>',
  }
  const MARKED = new Set(['a shell command', 'thoughts that never end', 'thoughts alone'])
  test.each(Object.entries(none))('%s', (name, answer) => {
    const found = findScript(answer)
    expect('problem' in found ? found.problem : found.script).toBe(MARKED.has(name) ? 'no-code' : null)
  })

  test.each(['', ' ', '\n\t\r\n', '\uFEFF'])('%j is empty', (answer) => {
    expect(findScript(answer)).toEqual({ problem: 'empty' })
  })

  test('an answer of 10 MB is not searched', () => {
    expect(findScript('x'.repeat(10 * 1024 * 1024))).toEqual({ problem: 'too-long' })
  })
})

describe('any answer of a model gives a value (OR-12)', () => {
  const nest = (depth: number): string => (depth === 0 ? 'x = 1' : `<code>${nest(depth - 1)}\n</code>\n"""\n${F}\n`)

  test('nested tags cost no more time than other text, at any depth', () => {
    expect(Object.keys(findScript(nest(20)))).toEqual(['script'])
    expect(findScript('<code>'.repeat(20_000))).toEqual({ script: '<code>'.repeat(20_000 - 2) })
  })

  test('a tag in a tag is read; a deeper one is text', () => {
    expect(findScript(`<execution-code>\n<python>\n${CODE}\n</python>\n</execution-code>`)).toEqual({ script: CODE })
    expect(findScript('<script><code><python>\nx = 1\n</python></code></script>')).toEqual({
      script: '<python>\nx = 1\n</python>',
    })
  })

  test('markers of blocks, strings and reasoning in any order', () => {
    const marks =
      '<code>|</code>|<python>|</python>|<script><![CDATA[|]]></script>|```|```python\n|~~~|"""|\'\'\'|"|\n|\n|\n|\\\n|#|<think>|</think>|{"code":|}|>>> |... |x = 1|emit_result(1)|a b|[('.split(
        '|',
      )
    const random = new Random(17)
    for (let n = 0; n < 1000; n += 1) {
      const answer = Array.from({ length: 1 + random.below(60) }, () => random.pick(marks)).join('')
      expect(findScript(answer)).toBeTypeOf('object')
    }
  })
})

describe('what an answer says beside its script', () => {
  test.each([
    [`Sure! I add.\n\n${F}python\n${CODE}\n${F}\n\nThat is all.`, 'Sure! I add.\n\nThat is all.'],
    [`<think>Hm: ${F}x${F}</think>\nI add.\n<execution-code>\n${CODE}\n</execution-code>`, 'I add.'],
    [`${F}\n${CODE}\n${F}`, ''],
    [CODE, ''],
    ['', ''],
    [`words ${'x'.repeat(300_000)}`, ''],
  ])('%# is the text around its blocks', (answer, plan) => {
    expect(findPlan(answer).replaceAll(/\n+/g, '\n\n')).toBe(plan)
  })
})
