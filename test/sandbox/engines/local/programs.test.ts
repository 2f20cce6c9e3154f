import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, mkdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requireLocalEngine } from '../../../support/local-engine.ts'
import { HostPlace, NEEDS_ROOT } from './host-place.ts'
import { refusal } from './refusal.ts'

const { skip } = await requireLocalEngine()
const place = new HostPlace()
afterAll(() => place[Symbol.dispose]())
const python = realpathSync('/usr/bin/python3')

describe.skipIf(skip)('programs', () => {
  test('without bubblewrap on PATH, the error says how to install it', () => {
    const path = place.programs('no-bwrap', { python3: python, flock: '/usr/bin/flock' })
    const { code, message, remedy } = refusal(
      place.report({ engine: { stateDir: place.stateDir() } }, { env: { PATH: path } }).report,
    )
    expect({ code, remedy }).toEqual({
      code: 'bubblewrap_missing',
      remedy: 'apt-get install bubblewrap (or the package of your distribution)',
    })
    expect(message).toContain('apt-get install bubblewrap')
  })

  test('a bubblewrap that does nothing is reported as not working', () => {
    const path = place.programs('false-bwrap', { bwrap: '/bin/false', python3: python, flock: '/usr/bin/flock' })
    const { report } = place.report({ engine: { stateDir: place.stateDir() } }, { env: { PATH: path } })
    expect(refusal(report).code).toBe('sandbox_setup_failed')
  })

  test('a bubblewrap that cannot be executed is skipped, and an error when an option names it', () => {
    const path = place.programs('broken-bwrap', { python3: python, flock: '/usr/bin/flock' })
    const bwrap = join(path, 'bwrap')
    writeFileSync(bwrap, '', { mode: 0o644 })
    const onPath = place.report({ engine: { stateDir: place.stateDir() } }, { env: { PATH: path } })
    expect(refusal(onPath.report).code).toBe('bubblewrap_missing')
    const named = refusal(place.report({ engine: { stateDir: place.stateDir(), bwrap } }).report)
    expect([named.code, named.message.includes(bwrap)]).toEqual(['bubblewrap_missing', true])
  })

  test.skipIf(NEEDS_ROOT)('a Python that the sandbox cannot reach is named with the remedy', () => {
    const closed = join(place.path, 'closed')
    mkdirSync(join(closed, 'bin'), { recursive: true })
    copyFileSync(python, join(closed, 'bin/python3'))
    chmodSync(join(closed, 'bin/python3'), 0o755)
    chmodSync(closed, 0o700)
    const wanted = join(closed, 'bin/python3')
    const { code, message } = refusal(place.report({ engine: { stateDir: place.stateDir(), python: wanted } }).report)
    expect([code, message.includes(wanted)]).toEqual(['python_unreachable', true])

    const path = place.programs('closed-first', { bwrap: '/usr/bin/bwrap', flock: '/usr/bin/flock' })
    const { report } = place.report(
      { engine: { stateDir: place.stateDir() } },
      { env: { PATH: `${closed}/bin:${path}` } },
    )
    expect([report.usable, report.probes['python']]).toEqual([true, python])
    expect(report.probes['python_passed_over']).toEqual([
      expect.stringMatching(/closed\/bin\/python3 .* is in a directory that uid \d+ cannot enter$/),
    ])
  })

  test('a Python that is too old is skipped, and an error when an option names it', () => {
    const path = place.programs('old-python', { bwrap: '/usr/bin/bwrap', flock: '/usr/bin/flock' })
    const old = join(path, 'python3')
    writeFileSync(old, "#!/bin/sh\nprintf '3.9.18\\0/old\\0/old'\n", { mode: 0o755 })
    const { report } = place.report({ engine: { stateDir: place.stateDir() } }, { env: { PATH: path } })
    expect([report.usable, report.probes['python'], report.probes['python_passed_over']]).toEqual([
      true,
      python,
      [`${old} is 3.9.18, older than 3.10`],
    ])
    const refused = refusal(place.report({ engine: { stateDir: place.stateDir(), python: old } }).report)
    expect([refused.code, refused.message.includes('3.9.18')]).toEqual(['python_missing', true])
    const missing = refusal(place.report({ engine: { stateDir: place.stateDir(), python: '/no/such/python' } }).report)
    expect(missing.code).toBe('python_missing')
  })

  test('a shim on PATH is resolved to the Python behind it', () => {
    const path = place.programs('shim', { bwrap: '/usr/bin/bwrap', flock: '/usr/bin/flock' })
    writeFileSync(join(path, 'python3'), `#!/bin/sh\nexec ${python} "$@"\n`, { mode: 0o755 })
    const { report } = place.report({ engine: { stateDir: place.stateDir() } }, { env: { PATH: path } })
    expect([report.usable, report.probes['python'], report.probes['python_passed_over']]).toEqual([true, python, []])
  })
})

describe.skipIf(skip || NEEDS_ROOT !== undefined)('a Python outside of /usr', () => {
  const stdlib = execFileSync(python, ['-c', 'import os; print(os.path.dirname(os.__file__))'], { encoding: 'utf8' })
  // Not below /tmp, because every sandbox has a private one.
  const opt = `/opt/sandglass-python-${process.pid}`
  beforeAll(() => {
    mkdirSync(join(opt, 'bin'), { recursive: true })
    chmodSync(opt, 0o755)
    writeFileSync(join(opt, 'private.txt'), 'a secret', { mode: 0o644 })
    copyFileSync(python, join(opt, 'bin/python3'))
  })
  afterAll(() => rmSync(opt, { recursive: true, force: true }))
  const SEE = `
import glob
emit_result([glob.glob('${opt}/*'), glob.glob('${opt}/bin/*'), glob.glob('/root/*') + glob.glob('/home/*')])
`

  test('exposes only the program to scripts, and no other file', () => {
    const wanted = join(opt, 'bin/python3')
    const { report, result } = place.report({ engine: { stateDir: place.stateDir(), python: wanted }, script: SEE })
    expect([report.usable, report.probes['python']]).toEqual([true, wanted])
    expect(result?.finalData).toEqual([[join(opt, 'bin')], [wanted], []])
  })

  test('works with its own standard library, found through a link', () => {
    const own = join(opt, 'own')
    mkdirSync(join(own, 'bin'), { recursive: true })
    copyFileSync(python, join(own, 'bin/python3'))
    writeFileSync(join(own, 'private.txt'), 'a secret', { mode: 0o644 })
    cpSync(stdlib.trim(), join(own, 'lib', basename(stdlib.trim())), { recursive: true })
    const link = place.programs('python-link', { python3: join(own, 'bin/python3') })
    const script = `
import ctypes, glob, lzma, os, sqlite3, ssl, zlib
emit_result([os.__file__.startswith('${own}/lib/'), ssl.OPENSSL_VERSION != '', sorted(glob.glob('${own}/*'))])
`
    const { report, result } = place.report({
      engine: { stateDir: place.stateDir(), python: join(link, 'python3') },
      script,
    })
    expect(report.probes['python']).toBe(join(own, 'bin/python3'))
    expect(result).toEqual({
      status: 'completed',
      error: null,
      finalData: [true, true, [join(own, 'bin'), join(own, 'lib')]],
    })
  })

  test('is refused below a private directory of the sandbox, or if it would expose a home directory', () => {
    const below = (path: string): string => {
      copyFileSync(python, path)
      chmodSync(path, 0o755)
      return path
    }
    const temporary = refusal(
      place.report({ engine: { stateDir: place.stateDir(), python: below(join(place.path, 'python3')) } }).report,
    )
    expect(temporary.code).toBe('python_unreachable')
    expect(temporary.message).toContain("which the sandbox's own /tmp hides")

    const home = join(opt, 'home')
    mkdirSync(join(home, 'bin'), { recursive: true })
    const liar = join(home, 'bin/python3')
    writeFileSync(liar, `#!/bin/sh\nprintf '3.11.2\\0${liar}\\0${home}'\n`, { mode: 0o755 })
    const env = { PATH: '/usr/bin:/bin', HOME: join(home, 'of-somebody') }
    const { code, message } = refusal(
      place.report({ engine: { stateDir: place.stateDir(), python: liar } }, { env }).report,
    )
    expect([code, message.includes(`would show ${home}/of-somebody to scripts`)]).toEqual(['python_unreachable', true])
  })
})
