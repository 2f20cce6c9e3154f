import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { listSkills, readSkill } from '../../../src/skills/index.ts'
import { stallDuring } from '../../support/stall.ts'

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'sandglass-skill-'))
  onTestFinished(() => rmSync(path, { recursive: true }))
  return path
}

function skillWith(text: string | Uint8Array): string {
  const path = directory()
  writeFileSync(join(path, 'SKILL.md'), text)
  return path
}

describe('WS-26: the front matter of a skill', () => {
  test('all of it is read, with the text behind it', async () => {
    const text =
      '---\r\nname: pdf-forms\r\ndescription: >-\r\n  Fills forms.\r\n  Use it for PDF.\r\nlicense: MIT\r\n' +
      'metadata: {version: "1.0", tags: [a, b]}\r\n---\r\n# Forms\r\n---\r\nmore\r\n'
    const path = skillWith(text)
    expect(await readSkill(path)).toEqual({
      name: 'pdf-forms',
      description: 'Fills forms. Use it for PDF.',
      directory: path,
      frontMatter: {
        name: 'pdf-forms',
        description: 'Fills forms. Use it for PDF.',
        license: 'MIT',
        metadata: { version: '1.0', tags: ['a', 'b'] },
      },
      instructions: '# Forms\r\n---\r\nmore\r\n',
    })
  })

  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'].map((key, index) => `${key}: &${key} [${Array(9).fill(`*${'abcdefgh'[index]}`).join(',')}]`).join('\n')}`
  test.each<[string, string | Uint8Array, string]>([
    ['no front matter', '# Skill', 'it does not begin with front matter'],
    ['text before it', 'x\n---\nname: a\ndescription: b\n---\n', 'it does not begin with front matter'],
    ['no end', '---\nname: a\n', 'it does not begin with front matter'],
    ['no YAML', '---\na: [\n---\n', 'its front matter is not YAML: '],
    ['a list', '---\n- a\n---\n', 'its front matter is not a mapping of keys'],
    ['nothing in it', '---\n---\n', 'its front matter is not a mapping of keys'],
    ['no name', '---\ndescription: x\n---\n', 'name: undefined is not 1 to 64 lower-case'],
    ['a name that leads out', '---\nname: ../x\ndescription: x\n---\n', 'name: "../x" is not 1 to 64 lower-case'],
    ['a name of upper case', '---\nname: Tool\ndescription: x\n---\n', 'name: "Tool" is not 1 to 64 lower-case'],
    ['a long name', `---\nname: ${'a'.repeat(65)}\ndescription: x\n---\n`, 'is not 1 to 64 lower-case'],
    ['a number as name', '---\nname: 1\ndescription: x\n---\n', 'name: 1 is not 1 to 64 lower-case'],
    [
      'no description',
      '---\nname: a\ndescription: " "\n---\n',
      'description: " " is not a non-blank text of at most 1024',
    ],
    ['aliases that grow', `---\n${bomb}\n---\n`, 'its front matter is not YAML: '],
    ['nesting', `---\nname: ${'['.repeat(490)}\n---\n`, 'its front matter '],
    ['much of it', `---\nname: ${'a'.repeat(20_000)}\n---\n`, 'its front matter has more than 16384 characters'],
    [
      'more indicators than the parser reads in little time',
      `---\n${']'.repeat(501)}\n---\n`,
      'has more than 500 line ends and',
    ],
    ['other bytes than UTF-8', new Uint8Array([0x2d, 0xff]), 'SKILL.md: '],
    ['a megabyte and more', 'x'.repeat(1024 * 1024 + 1), 'it has 1048577 bytes; the limit is 1048576'],
  ])('%s is refused', async (_what, text, problem) => {
    const stall = await stallDuring(() => expect(readSkill(skillWith(text))).rejects.toThrow(problem))
    expect(stall).toBeLessThan(500)
  })

  test('a tag of another type makes no object, and __proto__ no prototype', async () => {
    const { frontMatter } = await readSkill(skillWith('---\nname: a\ndescription: x\n__proto__: {polluted: 1}\n---\n'))
    expect((frontMatter as { polluted?: unknown }).polluted).toBeUndefined()
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  test('a directory without the file, and a FIFO in its place', async () => {
    const path = directory()
    await expect(readSkill(path)).rejects.toThrow('a skill is a directory with a SKILL.md')
    execFileSync('mkfifo', [join(path, 'SKILL.md')])
    await expect(readSkill(path)).rejects.toThrow('it is not a regular file')
  })

  test('the skills below a directory are listed by name; two of one name are refused', async () => {
    const path = directory()
    for (const [folder, name] of [
      ['one', 'b'],
      ['two', 'a'],
    ] as const) {
      mkdirSync(join(path, folder))
      writeFileSync(join(path, folder, 'SKILL.md'), `---\nname: ${name}\ndescription: x\n---\n`)
    }
    mkdirSync(join(path, 'other'))
    expect((await listSkills(path)).map(({ name, directory: at }) => [name, at])).toEqual([
      ['a', join(path, 'two')],
      ['b', join(path, 'one')],
    ])
    writeFileSync(join(path, 'other', 'SKILL.md'), '---\nname: a\ndescription: x\n---\n')
    await expect(listSkills(path)).rejects.toThrow('the name a is already used by')
    await expect(listSkills(join(path, 'none'))).rejects.toMatchObject({ code: 'invalid_request' })
  })
})
