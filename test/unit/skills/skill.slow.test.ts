import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { listSkills } from '../../../src/skills/index.ts'

test('too many skills are refused before one is read', async () => {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-skill-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  for (let at = 0; at <= 1000; at++) {
    mkdirSync(join(path, String(at)))
    writeFileSync(join(path, String(at), 'SKILL.md'), 'wrong')
  }
  await expect(listSkills(path)).rejects.toThrow('it has more than 1000 skills')
  rmSync(join(path, '7'), { recursive: true })
  await expect(listSkills(path)).rejects.toThrow('it does not begin with front matter')
})
