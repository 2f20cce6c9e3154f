import { afterEach, describe, expect, test, vi } from 'vitest'
import { isRequired, skipFor } from '../support/required.ts'

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
      expect(() => isRequired('local')).toThrow('it knows local, docker, pyodide, kubernetes, gvisor')
    },
  )

  test('turns a skip into a failure', () => {
    vi.stubEnv('SANDGLASS_TEST_REQUIRE', 'docker')
    expect(() => skipFor('docker', 'it is gone')).toThrow(
      'SANDGLASS_TEST_REQUIRE names docker, and it is not usable: it is gone',
    )
  })
})
