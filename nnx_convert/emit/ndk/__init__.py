"""`--emit ndk:DIR`: a model as C++17 that builds, compiles and runs it through NNAPI."""
from __future__ import annotations

from .project import Golden as Golden
from .project import for_device as for_device
from .project import project as project
