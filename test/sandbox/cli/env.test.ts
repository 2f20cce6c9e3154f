import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lastLine, linesOf, makeCli } from '../../support/cli/sandglass.ts'
import { fence, modelModule } from './solve-modules.ts'
import { makeCacheDir, noUv } from '../../support/environments/fixture.ts'
import { PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)
const cli = makeCli()
const cache = makeCacheDir()
let index: PackageIndex

beforeAll(async () => {
  index = await PackageIndex.start(
    makeWheel({ name: 'demo' }),
    makeWheel({ name: 'pyyaml', files: { 'yaml/__init__.py': 'VERSION = "1"\n' } }),
  )
})
afterAll(async () => {
  cli[Symbol.dispose]()
  cache[Symbol.dispose]()
  await index[Symbol.asyncDispose]()
})

const sandglass = (args: string[], input = ''): ReturnType<typeof cli.run> =>
  cli.run(args, { input, env: { SANDGLASS_CACHE_DIR: cache.path, UV_DEFAULT_INDEX: index.address } })

describe.skipIf(skip || noUv !== undefined)('packages at the command line', () => {
  test('run --with installs a package for the script', async () => {
    const ended = await sandglass(
      ['run', '-', '--json', '--with', 'demo', '--engine', 'local'],
      'import demo\nemit_result(demo.VERSION)',
    )
    expect(lastLine(ended)).toMatchObject({
      final_data: '1.0',
      environment: { packages: { demo: '1.0' }, cached: false },
    })
    expect(ended.code).toBe(0)
  })

  test('a terminal has one status line, which shows the installation while there is one', async () => {
    await using slow = await PackageIndex.start(makeWheel({ name: 'slow' }))
    slow.faults.delayMs = 1500 // many periods of a status line
    const args = ['run', '-c', 'import slow\nemit_result(1)', '--with', 'slow', '--engine', 'local']
    const { stdout } = await cli.run(args, {
      wrapper: ['python3', '-c', 'import pty, sys; pty.spawn(sys.argv[1:])'],
      env: { SANDGLASS_CACHE_DIR: cache.path, UV_DEFAULT_INDEX: slow.address, TERM: 'xterm' },
    })
    const lines = stdout.replaceAll('\u001B[2K', '').split('\r')
    const shown = lines.map((line) => /^(?:running|choosing|installing)/.exec(line)?.[0])
    const whileInstalling = shown.slice(shown.indexOf('choosing'), shown.lastIndexOf('installing') + 1)
    expect(whileInstalling).toContain('installing')
    expect(whileInstalling).not.toContain('running')
  })

  test('-c, batch and solve have packages, too', async () => {
    const script = 'import demo\nemit_result(demo.VERSION)'
    const model = modelModule(cli, 'model.ts', fence(script))
    const [code, batch, solve] = await Promise.all([
      sandglass(['run', '-c', script, '--json', '--with', 'demo', '--engine', 'local']),
      sandglass(['batch', '--engine', 'local'], `${JSON.stringify({ id: 'a', script, dependencies: ['demo'] })}\n`),
      sandglass(['solve', 'Import it', '--model', model, '--json', '--with', 'demo', '--engine', 'local']),
    ])
    expect([code, batch, solve].map((ended) => lastLine(ended)['final_data'])).toEqual(['1.0', '1.0', '1.0'])
  })

  test('declarations in a file are accepted for well-known packages; the same script from stdin is refused', async () => {
    const declares = (name: string, module: string): string =>
      `# /// script\n# dependencies = ["${name}"]\n# ///\nimport ${module}\nemit_result(${module}.VERSION)\n`
    const [known, unknown, stdin] = await Promise.all([
      sandglass(['run', cli.file('known.py', declares('pyyaml', 'yaml')), '--json', '--engine', 'local']),
      sandglass(['run', cli.file('unknown.py', declares('demo', 'demo')), '--json', '--engine', 'local']),
      sandglass(['run', '-', '--json', '--engine', 'local'], declares('pyyaml', 'yaml')),
    ])
    expect(lastLine(known)).toMatchObject({ final_data: '1', environment: { packages: { pyyaml: '1.0' } } })
    expect(lastLine(unknown)).toMatchObject({
      type: 'error',
      code: 'dependency_not_allowed',
      error: expect.stringContaining('--with') as string,
    })
    expect(lastLine(stdin)).toMatchObject({
      type: 'error',
      code: 'dependency_not_allowed',
      error: expect.stringContaining('--with') as string,
    })
    expect([known.code, unknown.code, stdin.code]).toEqual([0, 2, 2])
  })

  test('check counts the declarations of a file like run', async () => {
    const script = '# /// script\n# dependencies = ["pyyaml"]\n# ///\nimport yaml\nemit_result(yaml.VERSION)\n'
    const [file, stdin] = await Promise.all([
      sandglass(['check', cli.file('declares.py', script), '--json', '--engine', 'local']),
      sandglass(['check', '-', '--json', '--engine', 'local'], script),
    ])
    expect([file.code, JSON.parse(file.stdout)]).toEqual([0, { ok: true, violations: [] }])
    expect(JSON.parse(stdin.stdout)).toMatchObject({
      ok: false,
      violations: [{ code: 'dependency_not_allowed', message: expect.stringContaining('--with') as string }],
    })
  })

  // CA-12
  test.concurrent.each([['--pre'], ['git+https://example.com/x'], ['./x'], ['x; y'], ['раndas']])(
    'CA-12 the requirement %s is refused as usage',
    async (requirement) => {
      const asFlag = await sandglass(['run', '-', '--json', `--with=${requirement}`, '--engine', 'local'], '1')
      const asWord = await sandglass(['env', 'add', '--json', '--', requirement])
      expect([asFlag.code, asWord.code]).toEqual([2, 2])
      expect(lastLine(asWord)).toMatchObject({ type: 'error', status: 'invalid-request' })
    },
  )

  test('env add, list, verify, rm and prune', async () => {
    const added = lastLine(await sandglass(['env', 'add', 'demo', '--json', '--engine', 'local']))
    expect(added).toMatchObject({ v: 1, type: 'environment', packages: { demo: '1.0' }, in_use: false })
    const key = String(added.key)
    const listed = linesOf(await sandglass(['env', 'list', '--json']))
    expect(listed.map((line) => line.key)).toContain(key)
    expect((await sandglass(['env', 'list'])).stdout).toMatch(/^KEY +PYTHON +SIZE +USED +PACKAGES\n/)
    const same = await sandglass(['env', 'update', key.slice(0, 8), '--json'])
    expect(lastLine(same)).toMatchObject({ key })

    expect((await sandglass(['env', 'verify', key])).code).toBe(0)
    writeFileSync(join(cache.path, 'environments', key, packagesOf(key), 'demo/__init__.py'), 'evil = 1\n')
    const changed = await sandglass(['env', 'verify', key, '--json'])
    expect(lastLine(changed)).toMatchObject({
      ok: false,
      differences: [{ path: 'demo/__init__.py', problem: 'changed' }],
    })
    expect(changed.code).toBe(1)
    expect((await sandglass(['env', 'verify', key])).stdout).toBe(
      `${key}: 1 file differs\n  changed demo/__init__.py\n`,
    )

    expect(await sandglass(['env', 'rm', key])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(`^removed ${key}, and downloads: \\d`) as string,
    })
    expect((await sandglass(['env', 'rm', key])).code).toBe(2)
    expect((await sandglass(['env', 'prune'])).stdout).toMatch(/^removed \d+ environments? /)
    expect((await sandglass(['env', 'list'])).stdout).toBe('the cache has no environments\n')
  })

  test.concurrent.each([
    [['env'], 'one of list, add'],
    [['env', 'lst'], 'has no "lst"'],
    [['env', 'add'], 'needs packages'],
    [['env', 'rm'], 'takes one KEY'],
    [['env', 'rm', 'ffff'], 'no environment "ffff"'],
    [['env', 'list', 'x'], 'takes no "x"'],
  ])('wrong usage: %j', async (args, message) => {
    const ended = await sandglass(args)
    expect(ended.stderr).toContain(message)
    expect(ended.code).toBe(2)
  })
})

function packagesOf(key: string): string {
  return readdirSync(join(cache.path, 'environments', key)).find((name) => name.startsWith('packages-')) ?? ''
}
