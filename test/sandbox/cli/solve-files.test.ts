import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { lastLine } from '../../support/cli/sandglass.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { makeSolveCommand } from './solve-command.ts'
import { fence, modelModule } from './solve-modules.ts'

const { skip } = await requireLocalEngine()
const command = makeSolveCommand()
afterAll(() => command[Symbol.dispose]())
const { cli, solve } = command

const SCRIPT = `import pathlib
pathlib.Path("out").mkdir()
open("out/b.txt", "w").write(open("in/a.txt").read() * 2)
emit_result("done")`

describe.skipIf(skip)('files of sandglass solve', () => {
  test('--file, --collect and --save: what goes in, what comes out, and what the record says', async () => {
    const model = modelModule(cli, 'copies.ts', fence(SCRIPT))
    const directory = join(cli.directory, 'saved')
    const file = cli.file('a.txt', 'xy')
    const flags = ['--model', model, '--file', `${file}:in/a.txt`, '--collect', 'out/**', '--save', directory]
    const first = await solve('files', ['Double', ...flags])
    expect([first.code, first.stdout]).toEqual([0, 'done\n'])
    expect(first.stderr).toContain('[files] out/b.txt (4 bytes)\n')
    expect(readFileSync(join(directory, 'out/b.txt'), 'utf8')).toBe('xyxy')

    const second = await solve('files', ['Double', ...flags, '--json'])
    const line = lastLine(second)
    expect([second.code, line]).toMatchObject([
      2,
      { success: true, files: [{ path: 'out/b.txt', size: 4 }], warnings: [{ code: 'not_saved' }] },
    ])
    expect((await solve('files', ['Double', ...flags, '--overwrite', '--json'])).code).toBe(0)

    const env = { XDG_STATE_HOME: join(cli.directory, 'files') }
    expect((await cli.run(['show', 'last'], { env })).stdout).toContain('files     out/b.txt (4 bytes)\n')
    const shown = lastLine(await cli.run(['show', 'last', '--json'], { env }))
    expect(shown).toMatchObject({ attempts: [{ files: [{ path: 'out/b.txt', size: 4 }] }] })
  }, 60_000)

  test('flags that do not fit are refused before the model is asked', async () => {
    const model = modelModule(cli, 'none.ts', fence('emit_result(1)'))
    const refused = async (...flags: string[]): Promise<string> => {
      const { code, stderr } = await solve('refused', [...flags, '--model', model])
      expect(code).toBe(2)
      return stderr
    }
    expect(await refused('x', '--overwrite')).toContain('--overwrite needs --save DIR')
    expect(await refused('x', '--file', join(cli.directory, 'no'))).toContain('--file')
    expect(await refused('-', '--file=-:a')).toContain('only one of the task and --file can be -')
    expect(existsSync(join(cli.directory, 'refused'))).toBe(false)
  }, 60_000)
})
