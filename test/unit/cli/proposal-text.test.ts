import { expect, test } from 'vitest'
import { proposalText } from '../../../src/cli/review-person.ts'
import type { Proposal } from '../../../src/review.ts'

const PROPOSAL: Proposal = {
  id: 'p',
  task: 'Pay',
  step: null,
  attempt: 2,
  plan: 'I pay.\u001B[8m\n\u202Ehidden\n1 | emit_result(1)',
  script: 'x = 1\u001B[2J\npay(x)\r#gone',
  sha256: 'ab12',
  dependencies: ['pandas==2.3.1'],
  tools: [
    { name: 'pay', effect: 'write' },
    { name: 'sum_up', effect: null },
  ],
  sandbox: { engine: 'local', level: 'os-sandbox', python: '3.11.2', limitsEnforced: [], network: 'none' },
  diff: '--- last\n+++ this\n@@ -1,1 +1,1 @@\n-x = 2\n+x = 1\n',
  problem: 'no x',
}

test('a proposal on the terminal is whole and cannot drive it', () => {
  expect(proposalText(PROPOSAL, false)).toBe(`
Proposal, attempt 2
  > I pay.\\x1b[8m
  > \\u202ehidden
  > 1 | emit_result(1)
  1 | x = 1\\x1b[2J
  2 | pay(x)
  3 | #gone
  SHA-256   ab12
  calls     pay (write), sum_up (in the sandbox)
  packages  pandas==2.3.1
  sandbox   local (os-sandbox), network none
  changes since the last proposal
  @@ -1,1 +1,1 @@
  -x = 2
  +x = 1
Your script was not accepted: no x
`)
})

test('colours change nothing of the text, and no line of a script is left out', () => {
  const script = Array.from({ length: 3000 }, (_, n) => `x${n} = "${n}" # ${n}`).join('\n')
  const long = { ...PROPOSAL, script, diff: null }
  const text = proposalText(long, false)
  // oxlint-disable-next-line no-control-regex -- the colours are what is removed
  expect(proposalText(long, true).replaceAll(/\u001B\[\d+m/g, '')).toBe(text)
  expect(text).toContain('  2999 | x2998 = "2998" # 2998\n  3000 | x2999 = "2999" # 2999\n')
})

test('a long line goes on in rows with a mark of their own', () => {
  const script = `x = "${'a'.repeat(100)}"; pay(1)${' '.repeat(60)}pay(2)`
  const rows = proposalText({ ...PROPOSAL, script, diff: null }, false)
    .split('\n')
    .filter((row) => row.includes(' | ') && !row.includes('>'))
  expect(rows.map((row) => row.slice(0, 6))).toEqual(['  1 | ', ...rows.slice(1).map(() => '    | ')])
  const code = rows.map((row) => row.slice(6))
  expect([code.join(''), Math.max(...code.map(({ length }) => length))]).toEqual([script, 70])
})

test('characters without a shape are shown by their numbers', () => {
  const script = 'pay("a\u200B", "\u3164", "\u{E0041}", "\u00ADé👍")'
  expect(proposalText({ ...PROPOSAL, script, diff: null }, false)).toContain(
    '1 | pay("a\\u{200b}", "\\u{3164}", "\\u{e0041}", "\\u{ad}é👍")',
  )
})
