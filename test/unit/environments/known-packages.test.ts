import { expect, test } from 'vitest'
import { loadKnownPackages } from '../../../src/environments/known-packages.ts'
import {
  explainMissingModule,
  importedModules,
  requirementsOfImports,
} from '../../../src/environments/missing-module.ts'
import { measureBest } from '../../support/measure-best.ts'

const known = loadKnownPackages()

test.each([
  ['cv2', 'opencv-python'],
  ['sklearn', 'scikit-learn'],
  ['PIL', 'pillow'],
  ['yaml', 'pyyaml'],
  ['bs4', 'beautifulsoup4'],
  ['jwt', 'pyjwt'],
  ['serial', 'pyserial'],
  ['usb', 'pyusb'],
  ['Crypto', 'pycryptodome'],
  ['dateutil', 'python-dateutil'],
  ['dotenv', 'python-dotenv'],
  ['docx', 'python-docx'],
  ['fitz', 'pymupdf'],
  ['google.cloud.storage', 'google-cloud-storage'],
])('the module %s is first of all in %s', (module, name) => {
  expect(known.packagesFor(module)[0]).toBe(name)
})

test.each(['google', 'dataclasses', 'json', 'asyncio', 'enum', 'no_such_module_here'])(
  'no package is guessed for %s',
  (module) => expect(known.packagesFor(module)).toEqual([]),
)

test('well-known packages are found by any spelling, and the table has its date', () => {
  expect(known.has('Scikit_Learn')).toBe(true)
  expect(known.has('surely-no-such-package-1')).toBe(false)
  expect(known.date).toMatch(/^\d{4}-\d\d-\d\d$/)
})

test('the hint for a missing module names its package', () => {
  expect(explainMissingModule("ModuleNotFoundError: No module named 'cv2'", '')).toBe(
    "cv2 is in opencv-python (also in opencv-python-headless, opencv-contrib-python, opencv-contrib-python-headless): declare it, with dependencies: ['opencv-python'] or --with opencv-python",
  )
  expect(explainMissingModule("ModuleNotFoundError: No module named 'my_own'", '')).toBeUndefined()
  expect(explainMissingModule('ValueError: cv2', '')).toBeUndefined()
})

test.each([
  'import subprocess, sys\nsubprocess.check_call([sys.executable, "-m", "pip", "install", "pandas"])',
  'import os\nos.system("pip install pandas")',
  "subprocess.run(['pip3', 'install', 'x'])",
  'os.system("uv pip install x")',
])('a script that tries to install something is told to declare it', (script) => {
  expect(explainMissingModule('CalledProcessError: …', script)).toMatch(/^A script cannot install packages/)
})

test('imports of a script become requirements of well-known packages only', () => {
  const script =
    'import os, numpy as np, cv2\n  from sklearn.svm import SVC\nimport my_own\nfrom . import x\n# import yaml'
  expect(importedModules(script)).toEqual(['os', 'numpy', 'cv2', 'sklearn.svm', 'my_own'])
  expect(requirementsOfImports(script, new Set(['opencv-python-headless'])).map(({ text }) => text)).toEqual([
    'numpy',
    'scikit-learn',
  ])
})

test('a script is read in time proportional to its length', () => {
  const hostile = [
    'import ' + 'a,'.repeat(400_000),
    'from '.repeat(200_000),
    'pip'.repeat(300_000),
    `pip${' '.repeat(900_000)}install`,
  ]
  const read = (): void => {
    for (const script of hostile) {
      importedModules(script)
      explainMissingModule('x', script)
    }
  }
  expect(measureBest(read, 1)).toBeLessThan(500)
})
