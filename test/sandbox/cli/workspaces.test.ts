import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { storeInDirectory } from '../../../src/artifacts/index.ts'
import { WorkspaceLease } from '../../../src/persistence/index.ts'
import { linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())
const { skip } = await requireLocalEngine()
const directory = join(cli.directory, 'store')
const run = (words: readonly string[]): ReturnType<typeof cli.run> =>
  cli.run(words, { env: { SANDGLASS_STORE_DIR: directory } })

test.skipIf(skip)(
  'exec ID keeps files, and workspaces lists, shows and removes them',
  async () => {
    const engine = ['--engine', 'local']
    expect((await run(['exec', 'notes', ...engine, '--', 'sh', '-c', 'echo 1 > a'])).code).toBe(0)
    expect(await run(['exec', 'notes', ...engine, '--', 'cat', 'a'])).toEqual({ code: 0, stdout: '1\n', stderr: '' })
    const [line] = linesOf(await run(['workspaces', 'list', '--json']))
    expect(line).toEqual({
      v: 1,
      type: 'workspace',
      id: 'notes',
      files: 1,
      bytes: 2,
      owner: null,
      synced_at: expect.any(String) as string,
    })
    expect(linesOf(await run(['workspaces', 'show', 'notes', '--json']))).toEqual([line])
    const lease = await WorkspaceLease.acquire(storeInDirectory(directory), 'notes')
    for (const words of [
      ['exec', 'notes', ...engine, '--', 'true'],
      ['workspaces', 'rm', 'notes'],
    ]) {
      const { code, stderr } = await run(words)
      expect([code, stderr.includes('has an owner')]).toEqual([9, true])
    }
    await lease.release()
    expect(linesOf(await run(['workspaces', 'rm', 'notes', '--json']))).toEqual([line])
    expect((await run(['workspaces', 'show', 'notes'])).code).toBe(2)
    expect((await run(['workspaces', 'list'])).stdout).toBe('no workspaces in this store\n')
  },
  60_000,
)

test.skipIf(skip)(
  'run --workspace ID finds the files of the last command there, and is refused while somebody has it',
  async () => {
    const script = (code: string): string[] => ['run', '-c', code, '--engine', 'local', '--workspace', 'lab', '--json']
    const first = await run(script('open("n", "w").write("1"); raise ValueError("kept all the same")'))
    expect(linesOf(first)).toMatchObject([{ status: 'failed' }])
    expect(linesOf(await run(script('emit_result(open("n").read())')))).toMatchObject([{ final_data: '1' }])
    expect((await run(['exec', 'lab', '--engine', 'local', '--', 'cat', 'n'])).stdout).toBe('1')
    const lease = await WorkspaceLease.acquire(storeInDirectory(directory), 'lab')
    expect(linesOf(await run(script('open("n", "w")')))).toMatchObject([{ code: 'workspace_owned' }])
    expect((await run(script('open("n", "w")'))).code).toBe(9)
    await lease.release()
    const { code, stderr } = await run(['run', '-c', '1', '--store', directory])
    expect([code, stderr]).toEqual([2, expect.stringContaining('--workspace ID')])
  },
  60_000,
)
