import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { aptMirror, DEBIAN_MIRROR } from '../../../scripts/image/apt-mirror.ts'

const made: string[] = []
afterEach(() => made.splice(0).forEach((path) => rmSync(path, { recursive: true })))

function writeConfig(files: Readonly<Record<string, string>>): string {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-apt-'))
  made.push(directory)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    writeFileSync(join(directory, name), text)
  }
  return directory
}

test.each([
  [
    'one line a source',
    { 'sources.list': 'deb http://a.example/debian/ bookworm main contrib\n' },
    'http://a.example/debian',
  ],
  [
    'options, comments and sources of source packages',
    {
      'sources.list': [
        '# deb http://comment.example/debian bookworm main',
        'deb-src http://src.example/debian bookworm main',
        '  deb [arch=amd64 signed-by=/k.gpg]   https://b.example/d   bookworm   main # mine',
      ].join('\n'),
    },
    'https://b.example/d',
  ],
  [
    'other suites, other components and other media',
    {
      'sources.list': [
        'deb cdrom:[Debian]/ bookworm main',
        'deb http://security.example/debian-security bookworm-security main',
        'deb http://contrib.example/debian bookworm contrib',
        'deb file:/srv/debian bookworm main',
      ].join('\n'),
    },
    'file:/srv/debian',
  ],
  [
    'stanzas, with several suites, continued lines and comments',
    {
      'sources.list.d/debian.sources': [
        'Types: deb',
        '# URIs: http://comment.example/debian',
        'URIs: http://c.example/debian-security',
        'Suites: bookworm-security',
        'Components: main',
        '',
        'Types: deb deb-src',
        'URIs:',
        ' http://d.example/debian/',
        ' http://second.example/debian',
        'suites: bookworm bookworm-updates',
        'Components: main non-free',
        'Signed-By:',
        ' -----BEGIN PGP PUBLIC KEY BLOCK-----',
        ' .',
        ' bookworm: main',
      ].join('\n'),
    },
    'http://d.example/debian',
  ],
  [
    'stanzas that are switched off',
    {
      'sources.list.d/off.sources':
        'Types: deb\nURIs: http://off.example/\nSuites: bookworm\nComponents: main\nEnabled: no\n',
      'sources.list.d/on.list': 'deb http://on.example/debian bookworm main\n',
    },
    'http://on.example/debian',
  ],
])('the mirror is found in apt configuration with %s', async (_, files, mirror) => {
  expect(await aptMirror('bookworm', writeConfig(files as Record<string, string>))).toBe(mirror)
})

test('a suite that apt does not know comes from deb.debian.org', async () => {
  const ubuntu = writeConfig({ 'sources.list': 'deb http://archive.ubuntu.com/ubuntu noble main universe\n' })
  expect([await aptMirror('bookworm', ubuntu), await aptMirror('bookworm', '/nonexistent')]).toEqual([
    DEBIAN_MIRROR,
    DEBIAN_MIRROR,
  ])
})
