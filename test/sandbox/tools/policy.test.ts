import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { RunEvent } from '../../../src/executor/index.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import { scopedDirectory } from '../../support/engines/docker/scoped-directory.ts'
import { type OnEngine, onLocal } from './on-engine.ts'
import { counter } from './sample-tools.ts'

await onLocal(policies)

/** Tests of the checker before a run, on every engine. */
function policies(at: OnEngine): void {
  const { engine } = at

  test('OR-05: a script with mistakes is rejected before it runs, and takes no sandbox of the pool', async () => {
    await using own = await createSandglass({ engine, poolSize: 1, maxOverflow: 0 })
    const { tool, execute } = counter()
    const { hits, misses, waits } = own.stats()
    const script = 'count(n=1)\nemit_resutl(1)\n'
    const result = await own.run(script, { tools: [tool], policy: 'standard' })
    expect([result.status, result.errorKind, result.success, result.ending.cause]).toEqual([
      'rejected',
      'validation',
      false,
      'not-started',
    ])
    expect(result.violations.map(({ code, line, column }) => [code, line, column])).toEqual([['unknown_name', 2, 0]])
    expect(result.error).toMatch(/^the script was rejected before it ran: line 2: /)
    expect(await own.check(script, { tools: [tool] })).toEqual({ ok: false, violations: result.violations })
    expect(await own.check('emit_result(count(n=1))', { tools: [tool] })).toEqual({ ok: true, violations: [] })
    expect(execute).not.toHaveBeenCalled()
    const after = own.stats()
    expect([after.hits, after.misses, after.waits]).toEqual([hits, misses, waits])
  }, 60_000)

  test('stream() of a rejected script gives its result and no other event', async () => {
    const events: RunEvent[] = []
    for await (const event of at.sg.stream('emit_result(nope)', { policy: 'standard' })) events.push(event)
    expect(events.map(({ type }) => type)).toEqual(['result'])
  }, 60_000)

  test('strict admits files where the script has some, and says that there are none where it has not', async () => {
    const script = 'import csv\nwith open("a.csv") as lines: emit_result(list(csv.reader(lines)))'
    const options = { policy: 'strict', files: { 'a.csv': 'x,y' } } as const
    expect((await at.sg.run(script, options)).finalData).toEqual([['x', 'y']])
    expect((await at.sg.check(script, options)).ok).toBe(true)
    const { violations } = await at.sg.check(script, { policy: 'strict' })
    expect(violations.map(({ code }) => code)).toEqual(['forbidden_import', 'forbidden_name'])
    expect(violations.at(-1)?.hint).toContain('There are no files here')
  }, 60_000)

  test('strict refuses modules that it does not list, unless allowModules names them; a correct script runs', async () => {
    const script = 'import socket\nemit_result(socket.AF_INET)'
    const { ok, violations } = await at.sg.check(script, { policy: 'strict' })
    expect([ok, violations.map(({ line }) => line)]).toEqual([false, [1]])
    expect(await at.sg.check('import json\nemit_result(json.dumps(1))', { policy: 'strict' })).toEqual({
      ok: true,
      violations: [],
    })
    const allowed = await at.sg.run(script, { policy: 'strict', allowModules: ['socket'] })
    expect([allowed.status, allowed.finalData]).toEqual(['completed', 2])
  }, 60_000)

  test('sequential checks share one sandbox', async () => {
    const served = new Set<string>()
    for (let n = 0; n < 5; n += 1) served.add((await at.sg.run('nope', { policy: 'standard' })).sandbox.id)
    expect(served.size).toBe(1)
    const { sandbox } = await at.sg.run('emit_result(1)', { policy: 'standard' })
    expect(served.has(sandbox.id)).toBe(false)
  }, 60_000)

  test('functions of a tool file that each run has to load are known to the checker', async () => {
    using place = scopedDirectory()
    writeFileSync(
      join(place.path, 'thready.py'),
      'import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\ndef twice(n): return 2 * n\n',
    )
    await using own = await createSandglass({ engine, toolsDir: place.path, poolSize: 1 })
    const { status, finalData, violations } = await own.run('emit_result(twice(4))', { policy: 'strict' })
    expect([violations, status, finalData]).toEqual([[], 'completed', 8])
    expect((await own.check('twise(4)')).violations).toMatchObject([{ code: 'unknown_name' }])
  }, 60_000)
}
