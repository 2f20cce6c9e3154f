import { describe, expect, test } from 'vitest'
import {
  type CodeExecutor,
  type Engine,
  newEngine,
  newEnvInjectingCodeExecutor,
  newEnvInjectingEngine,
  type RunProgramSpec,
} from '../../../src/workspace-api/index.ts'
import { safeVariables } from '../../../src/workspace-api/run-env.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

const WS = { id: 'w', path: '/workspace' }
const RESULT = { stdout: '', stderr: '', exitCode: 0, durationMs: 0, timedOut: false }

function recordingEngine(interactive = false): { engine: Engine; specs: RunProgramSpec[] } {
  const specs: RunProgramSpec[] = []
  const nothing = (): never => {
    throw new Error('not used')
  }
  const runner = {
    runProgram: async (_ws: unknown, spec: RunProgramSpec) => {
      specs.push(spec)
      return RESULT
    },
    ...(interactive ? { startProgram: nothing } : {}),
  }
  const fs = {
    putFiles: nothing,
    stageDirectory: nothing,
    collect: nothing,
    stageInputs: nothing,
    collectOutputs: nothing,
  }
  return { engine: newEngine({ createWorkspace: nothing, cleanup: nothing }, fs, runner), specs }
}

describe('WS-22: variables of a provider', () => {
  test.each(workspaceCases('env_scrub')['merge_provider'] ?? [])('$name', async ({ spec_env, provider, expected }) => {
    const { engine, specs } = recordingEngine()
    const wrapped = newEnvInjectingEngine(engine, () => provider as Record<string, string>)
    const spec = { cmd: 'x', ...(spec_env === null ? {} : { env: spec_env as Record<string, string> }) }
    const before = JSON.stringify(spec)
    await wrapped.runner().runProgram(WS, spec)
    // What steers shells and loaders is dropped here also where the reference passes it on.
    const { PATH: _path, BASH_ENV: _bash, ...kept } = expected as Record<string, string>
    expect(specs[0]?.env).toEqual(kept)
    expect(JSON.stringify(spec)).toBe(before)
  })

  test.each(workspaceCases('env_scrub')['cases'] ?? [])('case %#', ({ dropped = [], kept = [] }) => {
    const given = Object.fromEntries([...(dropped as string[]), ...(kept as string[])].map((name) => [name, 'x']))
    expect(Object.keys(safeVariables(given))).toEqual(kept)
  })

  test('the spec wins, and may name what a provider may not', async () => {
    const { engine, specs } = recordingEngine()
    const wrapped = newEnvInjectingEngine(engine, async () => ({
      TOKEN: 'provider',
      PYTHONPATH: '/x',
      NODE_OPTIONS: '-r x',
    }))
    await wrapped.runner().runProgram(WS, { cmd: 'x', args: ['a'], env: { TOKEN: 'spec', PATH: '/bin' } })
    expect(specs).toEqual([{ cmd: 'x', args: ['a'], env: { TOKEN: 'spec', PATH: '/bin' } }])
  })

  test('without a provider, or without an engine, it is the same object; startProgram is there where it was', () => {
    const { engine } = recordingEngine()
    const provider = (): Record<string, string> => ({})
    expect(newEnvInjectingEngine(engine, undefined)).toBe(engine)
    expect(newEnvInjectingEngine(engine, provider).runner().startProgram).toBeUndefined()
    expect(newEnvInjectingEngine(recordingEngine(true).engine, provider).runner().startProgram).toBeTypeOf('function')
    const executor: CodeExecutor = {
      executeCode: async () => ({ output: '', outputFiles: [] }),
      codeBlockDelimiter: () => ({ start: 'a', end: 'b' }),
    }
    expect(newEnvInjectingCodeExecutor(executor, provider)).toBe(executor)
  })
})
