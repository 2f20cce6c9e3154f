import { afterAll, describe, expect, test } from 'vitest'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { linesOf, makeCli } from '../../support/cli/sandglass.ts'

const { skip, image } = await requireDockerEngine()
const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())
const flags = ['--engine', 'docker', '--image', image]

describe.skipIf(skip)('the engine docker on the command line', () => {
  test('run prints a result line that names the container it ran in', async () => {
    const { code, stdout, stderr } = await cli.run(['run', '-', '--json', ...flags], { input: 'emit_result(6 * 7)' })
    expect([code, stderr]).toEqual([0, ''])
    expect(linesOf({ stdout }).at(-1)).toMatchObject({
      status: 'completed',
      final_data: 42,
      sandbox: { engine: 'docker', level: 'container', network: 'none', use: 1 },
    })
  })

  test('batch answers every line, and a sandbox serves more than one', async () => {
    const lines = Array.from({ length: 6 }, (_, n) => JSON.stringify({ id: `r${n}`, script: `emit_result(${n})` }))
    const { code, stdout } = await cli.run(['batch', '-', '--json', '--pool-size', '1', ...flags], {
      input: `${lines.join('\n')}\n`,
    })
    const answers = linesOf({ stdout }).map(({ id, status, final_data }) => ({ id, status, final_data }))
    expect(code).toBe(0)
    expect(answers.toSorted((a, b) => String(a.id).localeCompare(String(b.id)))).toEqual(
      lines.map((_, n) => ({ id: `r${n}`, status: 'completed', final_data: n })),
    )
  })

  test('repl keeps the state through a cell that crashes, and goes back to a checkpoint', async () => {
    const requests = [
      { id: '1', cell: 'x = [1]' },
      { id: '2', cell: 'x.append(2)\nimport ctypes; ctypes.string_at(0)' },
      { id: '3', cell: 'x' },
      { id: '4', command: 'checkpoint', name: 'one' },
      { id: '5', cell: 'x.append(3)\nemit_result(x)' },
      { id: '6', command: 'restore', name: 'one' },
      { id: '7', cell: 'x' },
    ]
    const input = requests.map((request) => JSON.stringify(request)).join('\n')
    const { code, stdout, stderr } = await cli.run(['repl', '--json', ...flags], { input })
    expect([code, stderr]).toEqual([0, ''])
    expect(linesOf({ stdout })).toMatchObject([
      { id: '1', status: 'step-done', state: 'kept' },
      { id: '2', status: 'crashed', state: 'rolled-back' },
      { id: '3', status: 'step-done', state: 'kept', value: [1] },
      { id: '4', checkpoint: { grade: 'whole', lacks: [] } },
      { id: '5', status: 'completed', final_data: [1, 3] },
      { id: '6', command: 'restore', name: 'one', ended: [] },
      { id: '7', value: [1] },
    ])
  })

  test('a missing image exits with 8 and says what to do', async () => {
    const { code, stdout, stderr } = await cli.run(
      ['run', '-', '--json', '--engine', 'docker', '--image', 'sandglass.invalid/none:1'],
      { input: 'emit_result(1)' },
    )
    expect(code).toBe(8)
    expect(linesOf({ stdout }).at(-1)).toMatchObject({ code: 'image_missing', error_kind: 'infrastructure' })
    expect(stderr).toContain('docker pull sandglass.invalid/none:1')
  })

  test('ps shows the containers of a run while it lasts', async () => {
    const running = cli.start(['run', '-', '--events', ...flags])
    running.child.stdin.end('print("up", flush=True)\nwhile True: pass\n')
    await running.said('"text":"up')
    const [started] = linesOf({ stdout: running.stdout().split('\n', 1)[0] ?? '' })
    const listed = async (): Promise<unknown[]> =>
      (JSON.parse((await cli.run(['ps', '--json'])).stdout) as { kind: string; sandbox: string }[]).filter(
        ({ kind, sandbox }) => kind === 'container' && sandbox === started?.sandbox_id,
      )
    expect(await listed()).toMatchObject([{ kind: 'container', owner: 'alive', uid: null }])
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    expect(await listed()).toEqual([])
  })
})
