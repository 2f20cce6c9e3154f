import { afterEach, describe, expect, test, vi } from 'vitest'
import { dockerEngine } from '../src/engines/docker/index.ts'
import { localEngine } from '../src/engines/local/index.ts'
import type { SandboxEngine } from '../src/sandbox/index.ts'
import { isRequired, reportOf, skipFor } from './required.ts'

describe('SANDGLASS_TEST_REQUIRE', () => {
  afterEach(() => vi.unstubAllEnvs())

  test.each<[string, readonly string[]]>([
    ['', []],
    ['docker', ['docker']],
    ['local,docker,gvisor', ['local', 'docker', 'gvisor']],
  ])('%j requires exactly what it names', (value, required) => {
    vi.stubEnv('SANDGLASS_TEST_REQUIRE', value)
    expect(['local', 'docker', 'gvisor'].filter(isRequired)).toEqual(required)
  })

  test.each(['dokcer', 'local,Docker', 'local docker', 'local, docker'])(
    '%j is refused: it would require less',
    (value) => {
      vi.stubEnv('SANDGLASS_TEST_REQUIRE', value)
      expect(() => isRequired('local')).toThrow('it knows local, docker, gvisor')
    },
  )

  test('makes a failure of a skip', () => {
    vi.stubEnv('SANDGLASS_TEST_REQUIRE', 'docker')
    expect(() => skipFor('docker', 'it is gone')).toThrow(
      'SANDGLASS_TEST_REQUIRE names docker, and it is not usable: it is gone',
    )
  })
})

/*
 * The conformance suite leaves a limit out that an engine reports as not in force. Where the engine must be tested, all of
 * them must be there, or a machine that holds scripts to nothing would pass.
 */
describe('an engine that is required', () => {
  const isRoot = process.getuid?.() === 0
  const engines: readonly [string, () => SandboxEngine, boolean][] = [
    ['local', () => localEngine(), isRoot], // an ordinary user may have no control group
    ['docker', () => dockerEngine(), true],
  ]
  for (const [name, make, can] of engines) {
    test.skipIf(!can || !isRequired(name))(`holds scripts to every limit: ${name}`, async () => {
      const { report } = await reportOf(make())
      expect(report.limitsEnforced.toSorted()).toEqual(['cpu', 'disk', 'memory', 'output', 'pids', 'wall'])
    })
  }
})
