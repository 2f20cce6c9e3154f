import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { describe, expect, test } from 'vitest'
import * as values from '../../../src/workspace-api/index.ts'

/*
 * The page of names is how a user of the Go package finds a way here, so each name of the package has a row, and each row names what is
 * really exported.
 */

const ROOT = join(import.meta.dirname, '../../..')
const { constants, functions, types } = JSON.parse(
  readFileSync(join(ROOT, 'test/data/codeexecutor-names.json'), 'utf8'),
) as { constants: string[]; functions: string[]; types: Record<string, string[]> }
const PAGE = readFileSync(join(ROOT, 'docs/mission.md'), 'utf8').replaceAll(/^```[^]*?^```/gm, '')
/** Rows of the tables of names: the name of Go, the names here, the difference. */
const ROWS = [...PAGE.matchAll(/^\| `([A-Z]\w+)` \| (.+?) \|(.*)\|$/gm)].map(([, go = '', here = '']) => ({
  go,
  here: codeIn(here),
}))
const EXPORTS = exportsOf(join(ROOT, 'src/workspace-api/index.ts'))

describe('WS-01 and WS-03: the names of the original', () => {
  test('each has one row', () => {
    const wanted = [...constants, ...functions, ...Object.keys(types)]
    expect(ROWS.map(({ go }) => go).toSorted()).toEqual(wanted.toSorted())
  })

  test.each(Object.entries(types))('the row of %s names each of its fields and methods', (name, members) => {
    const row = PAGE.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? ''
    expect(members.filter((member) => !row.includes(`\`${member}\``) && !row.includes(`\`${member}()\``))).toEqual([])
  })

  test('what a row says is here is exported, and each export is on the page', () => {
    const named = ROWS.flatMap(({ here }) => here)
    expect(named.filter((name) => !EXPORTS.has(name))).toEqual([])
    const onPage = new Set(codeIn(PAGE))
    expect([...EXPORTS].filter((name) => !onPage.has(name))).toEqual([])
  })

  test('values are the ones that the names say', () => {
    const { dirSkills, dirWork, dirRuns, dirOut, metaFileName } = values
    expect([dirSkills, dirWork, dirRuns, dirOut, metaFileName]).toEqual([
      'skills',
      'work',
      'runs',
      'out',
      'metadata.json',
    ])
    const { envSkillsDir, envWorkDir, envOutputDir, envRunDir, envSkillName, workspaceEnvDirKey } = values
    expect([envSkillsDir, envWorkDir, envOutputDir, envRunDir, envSkillName, workspaceEnvDirKey]).toEqual([
      'SKILLS_DIR',
      'WORK_DIR',
      'OUTPUT_DIR',
      'RUN_DIR',
      'SKILL_NAME',
      'WORKSPACE_DIR',
    ])
    expect([values.defaultScriptFileMode, values.defaultExecFileMode, values.inlineSourceDir]).toEqual([
      0o644,
      0o755,
      'src',
    ])
  })
})

function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
}

/** Names of an entry, through `export *` of a file beside it. */
function exportsOf(path: string): Set<string> {
  const names = new Set<string>()
  const { module } = parseSync(path, readFileSync(path, 'utf8'))
  for (const { entries } of module.staticExports) {
    for (const { exportName, moduleRequest } of entries) {
      if (exportName.name !== null) names.add(exportName.name)
      else if (moduleRequest !== null)
        for (const name of exportsOf(join(path, '..', moduleRequest.value))) names.add(name)
    }
  }
  return names
}
