import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSandglass, type Sandglass, withTrace } from '../../../src/index.ts'
import { type EndedSpan, hearSpans } from '../../support/hear-spans.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

describe.skipIf(skip)('WS-27: the spans of a workspace, on the local engine', () => {
  let sg: Sandglass
  let host: string
  beforeAll(async () => {
    host = mkdtempSync(join(tmpdir(), 'sandglass-spans-'))
    writeFileSync(join(host, 'input.txt'), 'x')
    sg = await createSandglass({ engine: 'local', poolSize: 0 })
  }, 60_000)
  afterAll(async () => {
    rmSync(host, { recursive: true })
    await sg.close()
  })

  test('each operation has one, with its attributes and neither secrets nor output', async () => {
    using heard = hearSpans()
    const ended: (readonly EndedSpan[])[] = []
    /** What has ended since the last call. */
    const next = (): void => void ended.push(heard.ended.splice(0))
    const ws = await sg.workspace({ executionId: 'job', files: { 'a.txt': 'private' } })
    next()
    await ws.put({ 'b.txt': 'b', 'c.txt': 'c' })
    await ws.addInput('shown', host)
    next()
    const options = { secrets: { TOKEN: 'tok-1234' }, env: { PLAIN: 'private' }, shareSecrets: true }
    await ws.exec('sh', ['-c', 'echo private $TOKEN; exit 4'], options)
    await ws.exec('sleep', ['60'], { timeoutSec: 0.2 })
    next()
    const program = await ws.start('cat', [], options)
    expect(heard.ended).toEqual([])
    program.stdin.end()
    await program.exited
    await expect.poll(() => heard.ended.length, { timeout: 20_000 }).toBe(1)
    next()
    await withTrace({ traceId: 't' }, () => ws.run('print("private")', { executionId: 'script' }))
    await expect.poll(() => heard.ended.length, { timeout: 20_000 }).toBe(1)
    next()
    for await (const { path } of ws.collect('*.txt')) if (path === 'b.txt') break
    await ws.save(['*.txt'], join(host, 'saved'))
    next()
    await expect(ws.put({ '../x': '' })).rejects.toMatchObject({ code: 'invalid_request' })
    next()
    await ws.close()
    await ws.close()
    next()

    const exec_id = 'job'
    const failure: unknown = expect.objectContaining({ code: 'invalid_request' })
    expect(ended).toEqual([
      [
        ['stage.files', { exec_id, count: 1 }],
        ['create', { exec_id, path: '/workspace' }],
      ],
      [
        ['stage.files', { exec_id, count: 2 }],
        ['stage.dir', { exec_id, host_path: host, to: 'shown', mount_used: true }],
      ],
      [
        ['run', { exec_id, cmd: 'sh', cwd: '', exit_code: 4, timed_out: false }],
        ['run', { exec_id, cmd: 'sleep', cwd: '', exit_code: 137, timed_out: true }],
      ],
      [['run', { exec_id, cmd: 'cat', cwd: '', exit_code: 0, timed_out: false }]],
      [['run', { exec_id, trace_id: 't', cmd: 'python', cwd: '', execution_id: 'script' }]],
      [
        ['collect', { exec_id, patterns: ['*.txt'], count: 2 }],
        ['collect', { exec_id, patterns: ['*.txt'], host_path: join(host, 'saved'), count: 3 }],
      ],
      [['stage.files', { exec_id, error: failure }]],
      [['cleanup', { exec_id, path: '/workspace' }]],
    ])
    expect(JSON.stringify(ended)).not.toMatch(/tok-1234|private|TOKEN/)
  })

  test('without a name a workspace has its id; one that nobody uses ends with a span, too', async () => {
    using heard = hearSpans()
    const ws = await sg.workspace({ idleTimeoutSec: 0.1 })
    await expect.poll(() => heard.ended.map(([name]) => name), { timeout: 20_000 }).toEqual(['create', 'cleanup'])
    expect(heard.ended.map(([, { exec_id }]) => exec_id)).toEqual([ws.id, ws.id])
    await expect(sg.workspace({ executionId: 5 as never })).rejects.toThrow('executionId: 5 is not a string')
  })
})
