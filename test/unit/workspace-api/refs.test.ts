import { describe, expect, test } from 'vitest'
import { parseArtifactRef, parseInputRef } from '../../../src/workspace-api/index.ts'
import { inputNameOf, safeExecId } from '../../../src/workspace-api/refs.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

describe('WS-11: references to artifacts', () => {
  const cases = workspaceCases('parse_artifact_ref')['cases'] ?? []

  test.each(cases.filter(({ error }) => error === undefined))('$input', ({ input, expected }) => {
    expect(parseArtifactRef(input as string)).toEqual(expected)
  })

  test.each(cases.filter(({ error }) => error !== undefined))('$input is refused', ({ input }) => {
    // "invalid artifact ref" in the reference.
    expect(() => parseArtifactRef(input as string)).toThrow(/artifact reference.*the name is empty/)
  })

  test('a version beyond safe integers is refused', () => {
    expect(() => parseArtifactRef('a@9007199254740992')).toThrow('the version is too large')
    expect(parseArtifactRef('a@9007199254740991')).toEqual({ name: 'a', version: 9007199254740991 })
  })
})

describe('WS-06: sources of inputs', () => {
  // A path without a scheme is a path of the workspace for tools of the reference; an input names its scheme.
  const isRefused = ({ input, error }: Record<string, unknown>): boolean => error === true || input === 'out/a.txt'
  const cases = workspaceCases('file_ref_parse')['cases'] ?? []

  test.each(cases.filter((row) => !isRefused(row)))('$input', ({ input, expected }) => {
    const { scheme = '', path, artifact_name: name, artifact_version: version } = expected as Record<string, string>
    const [plain] = scheme.split('://')
    expect(parseInputRef(input as string)).toEqual(
      plain === 'artifact' ? { scheme: plain, name, version } : { scheme: plain, path },
    )
  })

  test.each(cases.filter(isRefused))('$input is refused', ({ input }) => {
    expect(() => parseInputRef(input as string)).toThrow(/: /)
  })

  test.each([
    ['noslash', 'from: unsupported input "noslash": it has no scheme; use artifact://NAME'],
    ['ftp://x/y', 'there is no scheme "ftp"'],
    ['artifact://@0', 'the name is empty'],
    ['host://etc/passwd', 'has no absolute path of the host'],
    ['workspace://../x', 'leads out by ".."'],
    ['skill://a/../../b', 'leads out by ".."'],
    ['skill:///a', 'has an absolute path'],
    ['', 'unsupported input'],
  ])('%s is refused', (from, problem) => {
    expect(() => parseInputRef(from)).toThrow(problem)
  })

  test.each([
    ['host:///a/../b/c', { scheme: 'host', path: '/b/c' }],
    ['skill://tool/k.txt', { scheme: 'skill', path: 'tool/k.txt' }],
    ['artifact://user:a b@3', { scheme: 'artifact', name: 'user:a b', version: 3 }],
  ])('%s', (from, expected) => {
    expect(parseInputRef(from)).toEqual(expected)
  })
})

describe('names of inputs', () => {
  const functions: Record<string, (input: string) => unknown> = {
    default_input_name: inputNameOf,
    artifact_base_name: inputNameOf,
    sanitize_exec_id: safeExecId,
  }
  const cases = (workspaceCases('input_names')['cases'] ?? []).filter(({ fn }) =>
    Object.hasOwn(functions, fn as string),
  )

  test.each(cases)('$fn of $input', ({ fn, input, expected }) => {
    expect(functions[fn as string]?.(input as string)).toBe(expected)
  })

  test('most cases have a function', () => {
    // Names of uploads and ids of paths of the host belong to tools that are not here: docs/mission.md.
    expect(cases.length).toBe(7)
  })
})
