"""Compile the kernels: the same sources once for each set of instructions, one library of them all.

The library has plain C functions of numbers and addresses and knows neither Python nor PyTorch, so
that one file serves every version of both.
"""

import platform
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Distribution, Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

SOURCES = Path("csrc")
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-ffp-contract=fast"]
AVX2 = ["-mavx2", "-mfma"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]
AVX512_BF16 = [*AVX512, "-mavx512bf16"]
VARIANTS = {"portable": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    FLAGS.append("-DCOOPSHEAF_X86")
    VARIANTS |= {"avx2": AVX2, "avx512": AVX512, "avx512_bf16": AVX512_BF16}
    if sys.platform == "linux":  # elsewhere nobody has tiles, or is given them
        VARIANTS["amx"] = [*AVX512_BF16, "-mamx-tile", "-mamx-bf16"]


class BuildLibrary(build_ext):
    """A library that is loaded by its path, not imported."""

    def get_ext_filename(self, name):
        return str(Path(*name.split(".")).with_suffix(".so"))

    def build_extension(self, extension):
        command = self.compiler.compiler_so_cxx[0]
        if shutil.which(command) is None:
            raise SystemExit(
                f"coopsheaf-kernels needs a C++ compiler, and there is no {command!r}: install g++ "
                "or clang++, or name one in CXX; coopsheaf works without this package"
            )
        build = Path(self.build_temp)
        build.mkdir(parents=True, exist_ok=True)
        made = {name: flags for name, flags in VARIANTS.items() if self.accepts(command, flags)}
        tiles = ["-DCOOPSHEAF_TILES"] if "amx" in made else []
        jobs = [("library.cpp", "library", [*FLAGS, *tiles])]
        for name, instructions in made.items():
            jobs.append(("variant.cpp", name, [*FLAGS, f"-DVARIANT={name}", *instructions]))
        with ThreadPoolExecutor() as pool:
            objects = list(pool.map(lambda job: self.compile(build, *job), jobs))
        target = Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.compiler.link_shared_object(objects, str(target), target_lang="c++")

    def accepts(self, command, flags):
        """Whether the compiler knows these instructions: the newest ones are newer than some."""
        test = [command, *flags, "-x", "c++", "-E", "-"]
        return subprocess.run(test, input=b"", capture_output=True).returncode == 0

    def compile(self, build, source, name, flags):
        target = str(build / f"{name}.o")
        command = self.compiler.compiler_so_cxx[0]
        self.spawn([command, *flags, "-c", str(SOURCES / source), "-o", target])
        return target


class AnyPython(bdist_wheel):
    """A wheel for every Python on this platform."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class Binary(Distribution):
    def has_ext_modules(self):
        return True


if sys.platform == "win32":
    raise SystemExit("coopsheaf-kernels is built with g++ or clang++ on Linux and macOS only")
setup(
    ext_modules=[Extension("coopsheaf_kernels.library", sources=[])],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": AnyPython},
    distclass=Binary,
)
