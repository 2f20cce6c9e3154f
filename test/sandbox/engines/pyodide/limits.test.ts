import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSandglass } from '../../../../src/index.ts'
import type { SandboxEngine } from '../../../../src/sandbox/index.ts'
import { sharedCache } from '../../../support/engines/pyodide/shared-cache.ts'
import { engineAt, runOn } from './fixture.ts'

const cache = sharedCache()
let engine: SandboxEngine
beforeAll(() => void (engine = engineAt(cache.path)))
afterAll(() => cache[Symbol.dispose]())

const MiB = 1024 * 1024

test('memory of Python and files together is limited, and a MemoryError can be caught', async () => {
  const script = `
held = []
try:
    while True:
        held.append(bytearray(4 << 20))
except MemoryError:
    most = len(held) * 4
    held.clear()
emit_result(most)
`
  const most = Number((await runOn(engine, script)).finalData)
  expect(most).toBeGreaterThan(80)
  expect(most).toBeLessThan(160)
})

test('a file that is deleted while it is open counts until it is closed', async () => {
  const script = `
import errno, os
files, codes = [], []
for n in range(4):
    file = open(f'f{n}', 'wb', buffering=0)
    os.unlink(f'f{n}')
    try:
        file.write(bytes(3 << 20)) == 3 << 20 or file.write(b'x')
    except OSError as error:
        codes.append(errno.errorcode[error.errno])
    files.append(file)
for file in files:
    file.close()
emit_result([codes, open('again', 'wb', buffering=0).write(bytes(8 << 20))])
`
  expect((await runOn(engine, script)).finalData).toEqual([['ENOSPC', 'ENOSPC'], 8 * MiB])
})

test('rejects a limit of CPU, and every limit that needs an operating system', async () => {
  const pyodide = { cacheDir: cache.path, bubblewrap: false }
  const options = { engine: 'pyodide', pyodide, poolSize: 1 } as const
  await expect(createSandglass({ ...options, limits: { cpus: 0.5 } })).rejects.toMatchObject({
    code: 'limit_not_enforceable',
  })
  for (const item of ['network', 'os-sandbox', 'cpu', 'system-call-filter'] as const) {
    await expect(createSandglass({ ...options, require: [item] })).rejects.toMatchObject({ code: 'requirement_unmet' })
  }
})

test('asyncio sleeps, gathers and times out without threads', async () => {
  const script = `
import asyncio, time
async def wait(n):
    await asyncio.sleep(n / 100)
    return n
async def main():
    started = time.monotonic()
    got = await asyncio.gather(*(wait(n) for n in (20, 10, 5)))
    try:
        await asyncio.wait_for(asyncio.sleep(60), 0.05)
    except TimeoutError:
        got.append('timed out')
    return got, time.monotonic() - started < 30
emit_result(asyncio.run(main()))
`
  expect((await runOn(engine, script)).finalData).toEqual([[20, 10, 5, 'timed out'], true])
})

test('a script that waits in time.sleep is interrupted at its deadline, with the place where it was', async () => {
  await using sg = await createSandglass({ engine: 'pyodide', pyodide: { cacheDir: cache.path }, poolSize: 1 })
  const { status, error, traceback } = await sg.run('import time\ntime.sleep(60)', {
    limits: { executionTimeoutSec: 1 },
  })
  expect([status, error]).toEqual(['timed-out', 'Script timed out after 1s'])
  expect(traceback).toMatch(/File "<script>", line 2, in <module>/)
})

test('os.fork fails with its error and writes nothing else', async () => {
  const script = `
import os
try:
    os.fork()
except OSError as error:
    emit_result(error.strerror)
`
  const { finalData, stderr, warnings } = await runOn(engine, script)
  expect([finalData, stderr, warnings]).toEqual(['Function not implemented', '', []])
})
