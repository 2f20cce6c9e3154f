import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { lastLine, makeCli } from '../../support/cli/sandglass.ts'
import { fence, modelModule, orderTools, RIGHT_SCRIPT, solveInVain } from './solve-modules.ts'

const { skip } = await requireLocalEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const ENV = { XDG_STATE_HOME: join(cli.directory, 'kept') }

describe.skipIf(skip)('sandglass show of a run that failed', () => {
  beforeAll(() => solveInVain(cli, 'Add up\nlate orders', 2, ENV))

  test('shows each attempt with the failing line marked, calls, output and traceback (OR-06)', async () => {
    const { code, stdout, stderr } = await cli.run(['show', 'last'], { env: ENV })
    expect([code, stderr]).toEqual([0, ''])
    expect(maskVariableParts(stdout)).toBe(`Task ID  retries-spent
  task      Add up
            late orders
  model     scripted-1
  mode      plan, at most 3 attempts, policy strict
  tools     search, customer
  took      3 attempts, 300 + 30 tokens, 4 tool calls, TIME
  started   WHEN UTC

Attempt 1  rejected after TIME
  prompt    N characters
  answer    in TIME, 100 + 10 tokens, scripted-1

  > 1 | orders = search(state="late")
    2 | emit_result(orders)

  script:1:17: error[unknown_argument]: search() has no parameter 'state'
    1 | orders = search(state="late")
      |                 ^
      = hint: search() takes status. Write status='late' in place of state='late'.

${failedAttempt(2)}

${failedAttempt(3)}
  repeats   the same script as the previous one

No answer: retries-spent
  KeyError: 'price'
`)
  })

  test('--json prints the record as one line', async () => {
    const ended = await cli.run(['show', 'last', '--json'], { env: ENV })
    expect([ended.code, ended.stdout.split('\n').length]).toEqual([0, 2])
    expect(lastLine(ended)).toMatchObject({
      type: 'run_record',
      status: 'retries-spent',
      task: 'Add up\nlate orders',
      missing_events: 0,
      attempts: [
        { status: 'rejected', violations: [{ code: 'unknown_argument', line: 1 }], sandbox: null },
        {
          status: 'failed',
          tool_calls: [
            { key: 'L1#1', line: 1, name: 'search', ok: true },
            { key: 'L3#1', line: 3, name: 'customer', ok: false, error: { code: 'not_found' }, result_json: null },
          ],
          sandbox: { engine: 'local', network: 'none' },
        },
        { status: 'failed', repetition: 'same-script' },
      ],
    })
  })

  test('runs lists it with a run that succeeded, newest first', async () => {
    const model = modelModule(cli, 'right.ts', fence(RIGHT_SCRIPT))
    await cli.run(['solve', 'Again', '--model', model, '--tools', orderTools(cli)], { env: ENV })
    const [text, limited, asJson] = await Promise.all([
      cli.run(['runs'], { env: ENV }),
      cli.run(['runs', '--limit', '1'], { env: ENV }),
      cli.run(['runs', '--json'], { env: ENV }),
    ])
    const table = maskVariableParts(text.stdout).replaceAll(/ +/g, ' ')
    expect([text.code, text.stderr, table]).toEqual([
      0,
      '',
      `RUN STARTED (UTC) STATUS MODE ATTEMPTS TOKENS TIME TASK
ID WHEN completed plan 1 110 TIME Again
ID WHEN retries-spent plan 3 330 TIME Add up late orders
`,
    ])
    expect([limited.stdout.split('\n').length, limited.stderr]).toEqual([
      3,
      'sandglass: 1 older task: --limit N shows more\n',
    ])
    const lines = JSON.parse(asJson.stdout) as Record<string, unknown>[]
    expect(lines[1]).toEqual({
      run_id: expect.any(String) as string,
      started_at: expect.any(String) as string,
      status: 'retries-spent',
      mode: 'plan',
      attempts: 3,
      tokens: 330,
      tool_calls: 4,
      duration_ms: expect.any(Number) as number,
      task: 'Add up\nlate orders',
    })
  })
})

/** The text of an attempt with {@link FAILING_SCRIPT}. */
function failedAttempt(number: number): string {
  return `Attempt ${number}  failed after TIME
  prompt    N characters
  answer    in TIME, 100 + 10 tokens, scripted-1
  sandbox   local (os-sandbox), Python VERSION, its Nth script, network none, LIMITS
  script    ran for TIME

    1 | orders = search(status="late")
    2 | try:
    3 |     customer(id="A-1")
    4 | except ToolError as error:
    5 |     print("nobody:", error)
  > 6 | total = orders[0]["price"]
    7 | emit_result(total)

  tool calls
    line 1  search(status="late")  TIME  → [{"id":"A-1","total":120,"status":"late"},{"id":"A-2","total":80,"status":"late"}]
    line 3  customer(id="A-1")  TIME  ✗ not_found: no customer of A-1

  stdout
    | nobody: no customer of A-1

  traceback
    | Traceback (most recent call last):
    |   File "<script>", line 6, in <module>
    |     total = orders[0]["price"]
MARKS
    | KeyError: 'price'

  error     KeyError: 'price'`
}

/** Masks the parts that differ between runs, machines and versions of Python. */
function maskVariableParts(text: string): string {
  return text
    .replaceAll(/^ {4}\|[ ~^]+\^+\n/gm, 'MARKS\n')
    .replaceAll(/ +\d+(\.\d+)? ms  ([→✗])/g, '  TIME  $2')
    .replaceAll(/\d+(\.\d+)? m?s\b/g, 'TIME')
    .replaceAll(/\d{8}T\d{9}-[0-9a-f]{8}/g, 'ID')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, 'WHEN')
    .replaceAll(/[\d,]+ characters/g, 'N characters')
    .replaceAll(/its \d+\w\w script/g, 'its Nth script')
    .replaceAll(/Python \d[\w.]+/g, 'Python VERSION')
    .replaceAll(/(limits [a-z, ]+|no limit enforced)$/gm, 'LIMITS')
}
