import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, globSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { definePythonTool, type Sandglass } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { noUv } from '../../support/environments/fixture.ts'
import { declares, demo, helper, IMPORT, newCache, newIndex, open } from '../../support/environments/indexed.ts'
import type { PackageIndex } from '../../support/environments/package-index.ts'
import { makeWheel } from '../../support/environments/wheel.ts'
import { eventually } from '../../support/eventually.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'
import { skipFor } from '../../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)
const DOUBLE = 'def double(x: int) -> int:\n    """Doubles."""\n    return 2 * x\n'

describe.skipIf(skip || noUv !== undefined)('packages on demand', () => {
  let index: PackageIndex
  let cacheDir: string
  /** Shared by the tests that need packages for some runs only. */
  let plain: Sandglass
  /** Shared by the tests whose runs have demo. */
  let withDemo: Sandglass
  beforeAll(async () => {
    index = await newIndex(demo, helper, makeWheel({ name: 'other', version: '2.0' }))
    cacheDir = newCache()
    plain = await open(index, cacheDir)
    withDemo = await open(index, cacheDir, { dependencies: ['demo'] })
  })
  afterAll(async () => {
    await plain?.close()
    await withDemo?.close()
  })

  test('a declared package and its dependencies can be imported; the second time no request goes to the index', async () => {
    const ownCache = newCache()
    await using sandglass = await open(index, ownCache, { dependencies: ['demo>=1'] })
    const first = await sandglass.run(IMPORT, { policy: 'standard' })
    expect(first).toMatchObject({ finalData: ['1.0', '1.0'], error: null })
    expect(first.environment).toMatchObject({ packages: { demo: '1.0', helper: '1.0' }, cached: false })
    expect((await sandglass.run(IMPORT)).environment).toMatchObject({ cached: true })
    expect((await sandglass.report()).probes['packages']).toEqual(['demo 1.0', 'helper 1.0'])
    const asked = index.requests.length

    await using again = await open(index, ownCache, { dependencies: ['Demo >=1'] })
    expect((await again.run(IMPORT)).environment).toMatchObject({ key: first.environment?.key, cached: true })
    expect(index.requests).toHaveLength(asked)
  })

  test('a run has its own set of packages, cached separately; the packages are read-only for scripts', async () => {
    const own = await withDemo.run('import other\nemit_result(other.VERSION)', { dependencies: ['other'] })
    expect(own).toMatchObject({ finalData: '2.0', environment: { packages: { other: '2.0' } } })
    expect(await withDemo.run('import other', { dependencies: [] })).toMatchObject({
      status: 'failed',
      environment: null,
    })
    // By the mount, whatever the modes of the files are.
    const mount = 'import demo, os\nemit_result(bool(os.statvfs(demo.__file__).f_flag & os.ST_RDONLY))'
    expect((await withDemo.run(mount)).finalData).toBe(true)
    const write = 'import demo\nopen(demo.__file__, "a").write("x = 1")'
    expect((await withDemo.run(write)).error).toMatch(/Read-only file system|Permission denied/)
    expect((await withDemo.run('import os\nos.mkdir("/packages/evil")')).error).toMatch(
      /Read-only file system|Permission denied/,
    )
  })

  test('PAR-007 what a script tries to change in packages reaches no script of another Sandglass', async () => {
    await using first = await open(index, cacheDir, { dependencies: ['demo'] })
    await using second = await open(index, cacheDir, { dependencies: ['demo'] })
    const poison = [
      'import os, demo',
      'tried = 0',
      'for way in (',
      '    lambda: open(demo.__file__, "a").write("evil = 1"),',
      '    lambda: os.unlink(demo.__file__),',
      '    lambda: os.rename(demo.__file__, "/packages/gone.py"),',
      '    lambda: os.chmod(demo.__file__, 0o666),',
      '    lambda: open("/packages/sitecustomize.py", "w").write("evil = 1"),',
      '):',
      '    try: way()',
      '    except OSError: tried += 1',
      'emit_result(tried)',
    ].join('\n')
    expect((await first.run(poison)).finalData).toBe(5)
    const look = 'import os, demo\nemit_result([hasattr(demo, "evil"), "sitecustomize.py" in os.listdir("/packages")])'
    expect((await second.run(look)).finalData).toEqual([false, false])
    expect((await first.run(look)).finalData).toEqual([false, false])
  })

  test('the checker knows the modules of the packages, and reports missing ones before the run', async () => {
    expect(await withDemo.check('import demo\nemit_result(1)')).toMatchObject({ ok: true })
    const { violations } = await withDemo.check('import other\nemit_result(1)')
    expect(violations).toMatchObject([{ line: 1, message: expect.stringContaining('other') as string }])
    expect(await withDemo.check('import other\nemit_result(1)', { dependencies: ['other'] })).toMatchObject({
      ok: true,
    })
  })

  test.each(['standard', 'strict'] as const)(
    'the checker (policy %s) names the package that carries a missing module, as far as the caller can declare it',
    async (policy) => {
      const found = /^cv2 is in opencv-python \(also in .*: declare it, with dependencies: \['opencv-python'\]/
      const { violations } = await plain.check('import cv2\nemit_result(1)', { policy })
      expect(violations).toMatchObject([{ hint: expect.stringMatching(found) as string }])
      const rejected = await plain.run('import cv2\nemit_result(1)', { policy })
      expect(rejected.violations).toMatchObject([{ hint: expect.stringMatching(found) as string }])
      expect((await plain.check('import asyncio\nimport nonsense', { policy })).violations).not.toMatchObject([
        { hint: expect.stringContaining('declare') as string },
      ])
    },
  )

  test('the checker counts what a script declares like the run that follows', async () => {
    await using sandglass = await open(index, cacheDir)
    expect(await sandglass.check(declares('other'))).toMatchObject({
      ok: false,
      violations: [{ code: 'dependency_not_allowed', line: 1, message: expect.stringContaining('other') as string }],
    })
    await expect(sandglass.check(declares('other'), { dependencies: ['absent'] })).rejects.toMatchObject({
      code: 'dependency_not_found',
    })
    const environments = { fromScript: 'declared', allow: ['other'] } as const
    await using admits = await open(index, cacheDir, { environments })
    expect(await admits.check(declares('other'))).toEqual({ ok: true, violations: [] })
  })

  test('prompts, asTool and solve name the packages with their versions', async () => {
    await using sandglass = await open(index, cacheDir, { dependencies: ['demo'] })
    expect(sandglass.asTool().description).toContain('demo 1.0')
    const needs = { tools: [definePythonTool({ source: DOUBLE, dependencies: ['other'] })] }
    expect(sandglass.asTool(needs).description).toContain('Installed packages: demo 1.0, helper 1.0, other.')
    expect(sandglass.asTool({ dependencies: ['demo>=1'] }).description).toContain('Installed packages: demo>=1.')
    const prompts: string[] = []
    const model = (prompt: string): Promise<string> => {
      prompts.push(prompt)
      return Promise.resolve(`\`\`\`python\n${IMPORT}\n\`\`\``)
    }
    const solved = await sandglass.solve('import it', { model })
    expect(solved.finalData).toEqual(['1.0', '1.0'])
    expect(prompts[0]).toContain('demo 1.0, helper 1.0')
    await sandglass.solve('import it', { model, ...needs })
    expect(prompts[1]).toContain('demo 1.0, helper 1.0, other 2.0')
    const without = await sandglass.solve('import it', { model, dependencies: [], maxRetries: 0 })
    expect(without).toMatchObject({ success: false, error: expect.stringContaining('demo') as string })
    expect(prompts[2]).not.toContain('demo 1.0')
  })

  test("a model's scripts get the packages that they name, if the host admits them", async () => {
    const environments = { fromScript: 'declared', allow: ['other'] } as const
    await using sandglass = await open(index, cacheDir, { environments })
    expect(sandglass.asTool().description).toContain(
      'Further packages (only other) are installed if the script begins with',
    )
    const answers = [
      declares('demo'),
      'import cv2',
      `${declares('other').replace('emit_result(', 'emit_intermediate("x", ')}`,
      declares('other'),
    ]
    const prompts: string[] = []
    const model = (prompt: string): Promise<string> => {
      prompts.push(prompt)
      return Promise.resolve(`\`\`\`python\n${answers[prompts.length - 1]}\n\`\`\``)
    }
    const solved = await sandglass.solve('import it', { model, mode: 'interactive', policy: 'off' })
    expect(solved).toMatchObject({ success: true, finalData: 1 })
    expect(prompts[0]).toContain('Further packages (only other) are installed if the script begins with')
    expect(prompts[1]).toContain('line 1: the script requires demo, which')
    expect(prompts[2]).toContain('cv2 is in opencv-python (also in')
  })

  test('a refusal of packages is an answer of the tool for agents', async () => {
    const answer = await plain.asTool().execute({ script: declares('demo') })
    expect(answer).toMatchObject({ ok: false, status: 'rejected' })
    expect(answer.mistakes?.[0]).toContain('line 1: the script declares demo')
    const missing = await plain.asTool({ policy: 'off' }).execute({ script: 'import cv2' })
    expect(missing.error).toMatch(/cv2 is in opencv-\S+.*, which is not installed/)
  })

  test('prepare installs in advance and reports its progress', async () => {
    await using sandglass = await open(index, newCache())
    const phases: string[] = []
    const prepared = await sandglass.prepare(['demo'], { onProgress: ({ phase }) => phases.push(phase) })
    expect(prepared).toMatchObject({ packages: { demo: '1.0', helper: '1.0' }, cached: false })
    expect([...new Set(phases)]).toEqual(['resolve', 'download', 'done'])
    const byteCode = await sandglass.run('import demo\nemit_result(demo.__cached__)', { dependencies: ['demo'] })
    expect(byteCode.finalData).toMatch(/^\/packages\/demo\/__pycache__\/__init__\.cpython-\d+\.pyc$/)
    const inSandbox = 'import os\nemit_result(os.path.exists(__import__("demo").__cached__))'
    expect((await sandglass.run(inSandbox, { dependencies: ['demo'] })).finalData).toBe(true)
  })

  test('a wheel on its way counts as far as it was unpacked', async () => {
    const large = makeWheel({ name: 'large', files: { 'large/__init__.py': '', 'large/data': randomBytes(8e6) } })
    const slow = await newIndex(large)
    const rest = Promise.withResolvers<void>()
    slow.faults.half = rest.promise
    await using sandglass = await open(slow, newCache())
    const told: number[] = []
    const { ms: _, ...prepared } = await sandglass.prepare(['large'], {
      onProgress({ phase, bytes, totalBytes }) {
        if (phase !== 'download') return
        told.push(bytes)
        if (bytes > 0 && bytes < totalBytes) rest.resolve()
      },
    })
    expect(prepared).toMatchObject({ packages: { large: '1.0' }, cached: false })
    expect(told).toEqual(told.toSorted((a, b) => a - b))
    expect(told.at(-1)).toBe(large.content.length)
  })

  test.each<[string, (sandglass: Sandglass, script: string) => Promise<unknown>]>([
    ['run', async (sandglass, script) => (await sandglass.run(script)).finalData],
    [
      'stream',
      async (sandglass, script) => {
        for await (const event of sandglass.stream(script)) if (event.type === 'result') return event.result.finalData
        return undefined
      },
    ],
    [
      'solve',
      async (sandglass, script) => {
        const model = scriptedModel(`\`\`\`python\n${script}\n\`\`\``)
        return (await sandglass.solve('draw', { model, policy: 'standard' })).finalData
      },
    ],
  ])(
    'from the third %s on, modules that scripts import are preloaded, and random numbers still differ',
    async (_, run) => {
      await using sandglass = await open(index, cacheDir, { dependencies: ['demo'] })
      const script =
        'import sys\nahead = "demo" in sys.modules\nimport demo, random\nemit_result([ahead, random.random()])'
      const numbers = new Set<unknown>()
      const late = await eventually(async () => {
        const [ahead, number] = (await run(sandglass, script)) as [boolean, number]
        numbers.add(number)
        return ahead && numbers.size > 3 ? undefined : `loaded ahead: ${ahead} after ${numbers.size} runs`
      }, 10_000)
      expect(late).toBeUndefined()
      expect(sandglass.stats().idleBytes).toBeGreaterThan(1024 * 1024)
    },
  )

  test('modules that packages load when they are used are preloaded, and none that a script makes up', async () => {
    const files = { 'lazy/__init__.py': '', 'lazy/late.py': '' }
    await using own = await newIndex(makeWheel({ name: 'lazy', files }))
    await using sandglass = await open(own, cacheDir, { dependencies: ['lazy'] })
    const script = `import importlib, sys
ahead = "lazy.late" in sys.modules
importlib.import_module("lazy.late")
sys.meta_path[0].find_spec("lazy.missing")
sys.modules["lazy.missing"] = sys
emit_result(ahead)`
    const late = await eventually(async () => {
      const { finalData: ahead, warnings } = await sandglass.run(script)
      expect(warnings).toEqual([])
      return ahead === true ? undefined : 'not loaded ahead'
    }, 10_000)
    expect(late).toBeUndefined()
  })

  test('CA-12 a package that cannot be installed is reported, and the others are installed if requested', async () => {
    const wanted = ['demo', 'absent', 'other']
    await expect(plain.prepare(wanted)).rejects.toMatchObject({ code: 'dependency_not_found' })
    const prepared = await plain.prepare(wanted, { partial: true })
    expect(prepared).toMatchObject({ packages: { demo: '1.0', other: '2.0' } })
    expect(prepared.failed).toMatchObject([{ requirement: 'absent', code: 'dependency_not_found' }])
    await expect(plain.prepare(['--pre'], { partial: true })).rejects.toMatchObject({ code: 'dependency_invalid' })
  })

  test('CA-11 the message of a failed installation contains that of the installer', async () => {
    await expect(plain.prepare(['demo', 'helper<1'])).rejects.toThrow(/uv said: .*helper/s)
  })

  test("CA-11 a model reads the installer's own message in its next prompt; CA-12 its names inject nothing", async () => {
    const environments = { fromScript: 'declared', allow: 'any' } as const
    await using sandglass = await open(index, cacheDir, { environments })
    const names = ['absent', '--index-url=http://127.0.0.1:1', 'other; $(touch x)', 'other']
    const prompts: string[] = []
    const model = (prompt: string): Promise<string> => {
      const script = declares('other').replace('"other"', JSON.stringify(names[prompts.length]))
      prompts.push(prompt)
      return Promise.resolve(`\`\`\`python\n${script}\n\`\`\``)
    }
    const solved = await sandglass.solve('import it', { model, policy: 'off', maxRetries: 3 })
    expect(solved).toMatchObject({ success: true, finalData: 1 })
    expect(prompts[1]).toMatch(/has no package absent.*uv said: .*absent was not found/s)
    expect(prompts[2]).toContain('is an option, not a requirement')
    expect(prompts[3]).toContain('cannot be parsed from')
  })

  test('packages of Python tools are installed for the runs that have them', async () => {
    const source = 'def version() -> str:\n    """The version."""\n    import other\n    return other.VERSION\n'
    const tools = [definePythonTool({ source, dependencies: ['other'] })]
    expect(await plain.run('emit_result(version())', { tools })).toMatchObject({
      finalData: '2.0',
      environment: { packages: { other: '2.0' } },
    })
  })

  test('a package that is missing names itself and the remedy', async () => {
    expect((await plain.run('import cv2')).error).toMatch(/cv2 is in opencv-python .*declare it/)
    const pip =
      'import subprocess, sys\nsubprocess.run([sys.executable, "-m", "pip", "install", "demo"], check=True, timeout=5)'
    expect((await plain.run(pip)).error).toMatch(/A script cannot install packages/)
  })
})

describe.skipIf(skip || noUv !== undefined)('files that a package makes in the home', () => {
  test('are made once and laid into the home of each run, also after another run changed them', async () => {
    const fonts = `import os
home = os.path.expanduser("~")
os.makedirs(home + "/.cache/matplotlib")
open(home + "/.cache/matplotlib/fontlist.json", "w").write("fonts")
open(home + "/.cache/other", "w").write("other")
`
    const index = await newIndex(
      makeWheel({ name: 'matplotlib', files: { 'matplotlib/__init__.py': '', 'matplotlib/font_manager.py': fonts } }),
    )
    await using sandglass = await open(index, newCache())
    await sandglass.prepare(['matplotlib'])
    const script = `import os, pathlib
home = pathlib.Path.home()
found = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
(home / ".cache/matplotlib/fontlist.json").write_text("changed")
emit_result(found)`
    const run = async (): Promise<unknown> => (await sandglass.run(script, { dependencies: ['matplotlib'] })).finalData
    for (let times = 0; times < 3; times += 1)
      expect(await run()).toEqual({ '.cache/matplotlib/fontlist.json': 'fonts' })
  })

  test('are made with byte code, and not again by a program that finishes what another one began', async () => {
    const fonts = `import os, time
home = os.path.expanduser("~") + "/.cache/matplotlib"
os.makedirs(home)
open(home + "/fontlist.json", "w").write(f"{os.path.exists(__cached__)} {time.time_ns()}")
`
    const index = await newIndex(
      makeWheel({ name: 'matplotlib', files: { 'matplotlib/__init__.py': '', 'matplotlib/font_manager.py': fonts } }),
    )
    const cacheDir = newCache()
    const prepareAndRead = async (): Promise<unknown> => {
      await using sandglass = await open(index, cacheDir)
      await sandglass.prepare(['matplotlib'])
      const script =
        'import pathlib\nemit_result((pathlib.Path.home() / ".cache/matplotlib/fontlist.json").read_text())'
      return (await sandglass.run(script, { dependencies: ['matplotlib'] })).finalData
    }
    const first = await prepareAndRead()
    expect(first).toMatch(/^True \d+$/)
    for (const mark of globSync(join(cacheDir, 'environments', '*', 'finished'))) rmSync(mark)
    expect(await prepareAndRead()).toBe(first)
  })
})

describe.skipIf(skip || noUv !== undefined)('hostile wheels', () => {
  test('run nothing on the host and change nothing outside of the cache', async () => {
    const mark = join(newCache(), '..', 'mark')
    const evil = `open(${JSON.stringify(mark)}, "w").write("x")\n`
    const hostile = makeWheel({
      name: 'hostile',
      files: {
        'hostile/__init__.py': 'VERSION = "1"\n',
        'hostile.pth': `import os; ${evil}`,
        'sitecustomize.py': evil,
        'usercustomize.py': evil,
        'json/__init__.py': evil,
        'py_compile.py': evil,
        'hostile-1.0.data/scripts/ls': `#!/bin/sh\ntouch ${mark}\n`,
      },
    })
    const index = await newIndex(hostile)
    const cacheDir = newCache()
    await using sandglass = await open(index, cacheDir, { dependencies: ['hostile'] })
    await sandglass.prepare(['hostile'])
    const result = await sandglass.run('import hostile, json\nemit_result([hostile.VERSION, json.dumps(1)])')
    expect(result.finalData).toEqual(['1', '1'])
    expect(existsSync(mark)).toBe(false)
  })

  test.each([['../../outside.py'], ['/tmp/sandglass-outside.py'], ['x/../../outside.py']])(
    'cannot write to %s',
    async (path) => {
      const index = await newIndex(
        makeWheel({ name: 'escapes', files: { 'escapes/__init__.py': '', [path]: 'x = 1\n' } }),
      )
      const cacheDir = newCache()
      await open(index, cacheDir, { dependencies: ['escapes'] }).then(
        (sandglass) => sandglass.close(),
        (error: unknown) => expect(error).toMatchObject({ code: 'dependency_invalid' }),
      )
      const found = execFileSync('find', [join(cacheDir, '..'), '-name', '*outside.py'], { encoding: 'utf8' })
      expect(
        found.split('\n').filter((one) => one !== '' && !one.includes('/uv/') && !one.includes('/packages/')),
      ).toEqual([])
      expect(existsSync('/tmp/sandglass-outside.py')).toBe(false)
    },
  )

  test('a file that unpacks to a gigabyte is refused, and leaves nothing', async () => {
    const bomb = makeWheel({
      name: 'bomb',
      files: { 'bomb/__init__.py': '', 'bomb/data': new Uint8Array(600 * 1024 * 1024) },
    })
    const index = await newIndex(bomb)
    const cacheDir = newCache()
    await expect(open(index, cacheDir, { dependencies: ['bomb'] })).rejects.toMatchObject({
      code: 'dependency_invalid',
    })
    expect(readdirSync(join(cacheDir, 'environments'))).toEqual([])
    const kept = execFileSync('du', ['-sm', join(cacheDir, 'uv')], { encoding: 'utf8' })
    expect(Number(kept.split('\t')[0])).toBeLessThan(100)
  }, 60_000)
})

describe.skipIf(skip || noUv !== undefined)('the cache', () => {
  test('an environment that disappears is installed again', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    await using sandglass = await open(index, cacheDir, { dependencies: ['demo'], maxUses: 1 })
    expect((await sandglass.run(IMPORT)).success).toBe(true)
    // Byte code may be on its way into it: removed in place, the directory would not be empty at the end.
    renameSync(join(cacheDir, 'environments'), join(cacheDir, 'removed'))
    rmSync(join(cacheDir, 'removed'), { recursive: true })
    expect(await sandglass.run(IMPORT)).toMatchObject({ success: true, environment: { cached: false } })
  })

  test('an environment whose record is damaged is installed again', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    const first = await open(index, cacheDir, { dependencies: ['demo'] })
    const { environment } = await first.run(IMPORT)
    await first.close()
    writeFileSync(join(cacheDir, 'environments', environment?.key ?? '', 'record.json'), '{"key":')
    await using sandglass = await open(index, cacheDir, { dependencies: ['demo'] })
    expect(await sandglass.run(IMPORT)).toMatchObject({ success: true, environment: { cached: false } })
  })

  test('a directory of another user, or one that others may write, is refused by name', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    execFileSync('chmod', ['o+w', cacheDir])
    await expect(open(index, cacheDir, { dependencies: ['demo'] })).rejects.toMatchObject({
      code: 'cache_dir_unusable',
      message: expect.stringContaining(cacheDir) as string,
    })
    const file = `${cacheDir}-file`
    writeFileSync(file, '')
    await expect(open(index, file, { dependencies: ['demo'] })).rejects.toMatchObject({ code: 'cache_dir_unusable' })
  })

  test('concurrent requests install once', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    const all = await Promise.all(Array.from({ length: 3 }, () => open(index, cacheDir, { dependencies: ['demo'] })))
    const results = await Promise.all(all.map((sandglass) => sandglass.run(IMPORT)))
    await Promise.all(all.map((sandglass) => sandglass.close()))
    expect(results.map(({ success }) => success)).toEqual([true, true, true])
    expect(index.downloads.filter((name) => name === demo.filename)).toHaveLength(1)
  })

  test('a umask that closes files to others does not close packages to scripts', async () => {
    const index = await newIndex(demo, helper)
    const cacheDir = newCache()
    const before = process.umask(0o077)
    try {
      await using sandglass = await open(index, cacheDir, { dependencies: ['demo'] })
      expect(await sandglass.run(IMPORT)).toMatchObject({ success: true })
    } finally {
      process.umask(before)
    }
    const [found = ''] = execFileSync('find', [cacheDir, '-path', '*/environments/*/demo'], { encoding: 'utf8' }).split(
      '\n',
    )
    expect(statSync(found).mode & 0o005).toBe(0o005)
  })
})
