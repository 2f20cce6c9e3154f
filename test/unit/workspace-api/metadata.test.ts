import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  dirDigest,
  ensureLayout,
  type InputRecord,
  loadMetadata,
  newMetadata,
  saveMetadata,
  updateMetadata,
} from '../../../src/workspace-api/index.ts'
import { isMetadataDraft, pinnedVersion } from '../../../src/workspace-api/metadata.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-metadata-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

const inputOf = (from: string): InputRecord => ({ from, to: 'x', timestamp: new Date(0) })

describe('WS-03: the layout of a workspace', () => {
  test('EnsureLayout creates directories and metadata, and changes nothing that is there', async () => {
    const root = directory()
    const paths = await ensureLayout(root)
    expect(paths).toEqual({
      '': root,
      skills: join(root, 'skills'),
      work: join(root, 'work'),
      runs: join(root, 'runs'),
      out: join(root, 'out'),
    })
    expect(readdirSync(root).toSorted()).toEqual(['metadata.json', 'out', 'runs', 'skills', 'work'])
    const before = readFileSync(join(root, 'metadata.json'), 'utf8')
    expect(JSON.parse(before)).toMatchObject({ version: 1, skills: {}, inputs: [], outputs: [] })
    await ensureLayout(root)
    expect(readFileSync(join(root, 'metadata.json'), 'utf8')).toBe(before)
    writeFileSync(join(root, 'file'), '')
    await expect(ensureLayout(join(root, 'file'))).rejects.toMatchObject({ code: 'workspace_io' })
  })
})

describe('WS-24: metadata', () => {
  test('Load missing: defaults', async () => {
    expect(await loadMetadata(directory())).toMatchObject({ version: 1, inputs: [], outputs: [], skills: {} })
  })

  test('what was saved is loaded', async () => {
    const root = directory()
    const skill = { name: 's', relPath: 'skills/s', digest: 'd', mounted: true, stagedAt: new Date(1) }
    const output = { globs: ['*'], savedAs: ['a'], versions: [0], limitsHit: true, timestamp: new Date(2) }
    const input = { ...inputOf('artifact://a'), resolved: 'a', version: 3, mode: 'copy' }
    const metadata = { ...newMetadata(), skills: { s: skill }, inputs: [input], outputs: [output] }
    await saveMetadata(root, metadata)
    expect(await loadMetadata(root)).toEqual(metadata)
    expect(readdirSync(root)).toEqual(['metadata.json'])
    expect(JSON.parse(readFileSync(join(root, 'metadata.json'), 'utf8'))).toMatchObject({
      created_at: metadata.createdAt.toISOString(),
      skills: { s: { rel_path: 'skills/s', staged_at: '1970-01-01T00:00:00.001Z' } },
      inputs: [{ from: 'artifact://a', version: 3, ts: '1970-01-01T00:00:00.000Z' }],
      outputs: [{ saved_as: ['a'], limits_hit: true }],
    })
  })

  const times =
    '"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00.5+02:00","last_access":"2026-01-01T00:00:00Z"'
  test('null for an empty list, as Go writes it, and unknown keys are read', async () => {
    const root = directory()
    writeFileSync(join(root, 'metadata.json'), `{"version":1,${times},"skills":null,"prepared":[{"key":"k"}]}`)
    expect(await loadMetadata(root)).toMatchObject({ version: 1, skills: {}, inputs: [], outputs: [] })
  })

  test.each([
    ['{"version":', 'JSON'],
    ['{"version":"bad"}', 'version: '],
    [`{"version":2,${times}}`, 'version: '],
    [`{"version":1,${times},"inputs":[{"from":1}]}`, 'inputs.0.from: '],
    ['['.repeat(5000), 'nested deeper'],
  ])('corrupt: %.40s is reported and set aside', async (text, problem) => {
    const root = directory()
    writeFileSync(join(root, 'metadata.json'), text)
    const error: Error = await loadMetadata(root).then(
      () => expect.unreachable(),
      (reason: Error) => reason,
    )
    expect(error).toMatchObject({ code: 'workspace_io' })
    expect(error.message).toContain(problem)
    const [aside = ''] = readdirSync(root)
    expect(error.message).toContain(aside)
    expect(readFileSync(join(root, aside), 'utf8')).toBe(text)
    expect(await loadMetadata(root)).toMatchObject({ version: 1 })
  })

  test('a damaged file is set aside once, and never one that was written meanwhile', async () => {
    for (let round = 0; round < 20; round += 1) {
      const root = directory()
      writeFileSync(join(root, 'metadata.json'), '{')
      const written = { ...newMetadata(), inputs: [inputOf('host:///kept')] }
      const loads = [1, 2, 3].map(() => loadMetadata(root))
      const results = await Promise.allSettled([...loads, saveMetadata(root, written), loadMetadata(root)])
      const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
      expect(reasons.filter((reason) => (reason as { code?: string }).code !== 'workspace_io')).toEqual([])
      expect(await loadMetadata(root)).toEqual(written)
      expect(readdirSync(root).filter((name) => name.includes('.corrupt-')).length).toBeLessThanOrEqual(1)
    }
  })

  test('Save when metadata.json is a directory: an error, and no draft is left', async () => {
    const root = directory()
    mkdirSync(join(root, 'metadata.json', 'x'), { recursive: true })
    await expect(saveMetadata(root, newMetadata())).rejects.toMatchObject({ code: 'workspace_io' })
    expect(readdirSync(root)).toEqual(['metadata.json'])
    await expect(loadMetadata(root)).rejects.toMatchObject({ code: 'workspace_io' })
    expect(readdirSync(root)).toEqual(['metadata.json'])
  })

  test('lock with a cancelled signal: the change is not made', async () => {
    const root = directory()
    let calls = 0
    const change = updateMetadata(root, (now) => ((calls += 1), now), { signal: AbortSignal.abort() })
    await expect(change).rejects.toMatchObject({ code: 'aborted' })
    expect(calls).toBe(0)
  })

  test.each([
    ...(workspaceCases('metadata_temp_names')['cases'] ?? []).map(({ name, expected }) => [name, expected]),
    ...(workspaceCases('metadata_temp_names')['root_path_cases'] ?? []).map(({ path, expected }) => [path, expected]),
    ['.metadata.0.2.3.0123456789abcdef.tmp', false],
    ['.metadata.1.2.3.norand.tmp', true],
  ] as [string, boolean][])('%s is a draft: %s', (name, expected) => {
    expect(isMetadataDraft(name)).toBe(expected)
  })

  test.each(workspaceCases('pinned_artifact_version')['cases'] ?? [])('WS-06: the version of $name at $to', (row) => {
    const { inputs, name, to, expected } = row as {
      inputs: InputRecord[]
      name: string
      to: string
      expected: number | null
    }
    expect(pinnedVersion(inputs, name, to) ?? null).toBe(expected)
  })
})

describe('WS-23: the digest of a directory', () => {
  test.each(workspaceCases('dir_digest')['cases'] ?? [])('case %#', async ({ files, expected }) => {
    const root = directory()
    for (const [path, content] of Object.entries(files as Record<string, string>)) {
      mkdirSync(join(root, dirname(path)), { recursive: true })
      writeFileSync(join(root, path), content)
    }
    mkdirSync(join(root, 'empty'))
    expect(await dirDigest(root)).toBe(expected)
  })

  test('paths are sorted by their bytes, and a link to a file below is that file', async () => {
    const root = directory()
    mkdirSync(join(root, 'a'))
    // U+FF61 is above U+1F600 by UTF-16, and below it by UTF-8.
    for (const name of ['a/x', 'a-b', '\uff61', '\u{1f600}']) writeFileSync(join(root, name), name)
    symlinkSync('a/x', join(root, 'b'))
    const hash = createHash('sha256')
    for (const [path, content] of [
      ['a-b', 'a-b'],
      ['a/x', 'a/x'],
      ['b', 'a/x'],
      ['\uff61', '\uff61'],
      ['\u{1f600}', '\u{1f600}'],
    ])
      hash.update(`${path}\0${content}\0`)
    expect(await dirDigest(root)).toBe(hash.digest('hex'))
    symlinkSync('/etc/passwd', join(root, 'c'))
    await expect(dirDigest(root)).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(dirDigest(join(root, 'a/x'))).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
