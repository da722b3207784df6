"""The mathematics: graphs, sheaves, their Laplacians as operators. Knows nothing of learning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coopsheaf.lazy import attach

if TYPE_CHECKING:
    from coopsheaf.sheaves.adjacency import along_edges as along_edges
    from coopsheaf.sheaves.adjacency import sheaf_adjacency as sheaf_adjacency
    from coopsheaf.sheaves.coboundaries import coboundary as coboundary
    from coopsheaf.sheaves.connections import connection_maps as connection_maps
    from coopsheaf.sheaves.connections import connection_sheaf as connection_sheaf
    from coopsheaf.sheaves.connections import random_connection as random_connection
    from coopsheaf.sheaves.constructions import fold_directions as fold_directions
    from coopsheaf.sheaves.constructions import magnetic_sheaf as magnetic_sheaf
    from coopsheaf.sheaves.constructions import quiver_sheaf as quiver_sheaf
    from coopsheaf.sheaves.constructions import signed_sheaf as signed_sheaf
    from coopsheaf.sheaves.diffusion import message_diffusion as message_diffusion
    from coopsheaf.sheaves.diffusion import paper_diffusion as paper_diffusion
    from coopsheaf.sheaves.diffusion import released_diffusion as released_diffusion
    from coopsheaf.sheaves.eigenpairs import Eigenpairs as Eigenpairs
    from coopsheaf.sheaves.eigenpairs import smallest_eigenpairs as smallest_eigenpairs
    from coopsheaf.sheaves.from_networkx import NetworkxSheaf as NetworkxSheaf
    from coopsheaf.sheaves.from_networkx import sheaf_from_networkx as sheaf_from_networkx
    from coopsheaf.sheaves.graph import Graph as Graph
    from coopsheaf.sheaves.laplacian import in_laplacian as in_laplacian
    from coopsheaf.sheaves.laplacian import out_laplacian as out_laplacian
    from coopsheaf.sheaves.laplacian import sheaf_laplacian as sheaf_laplacian
    from coopsheaf.sheaves.maps import ConformalMaps as ConformalMaps
    from coopsheaf.sheaves.nonlinear import BoundedConfidence as BoundedConfidence
    from coopsheaf.sheaves.nonlinear import NonlinearLaplacian as NonlinearLaplacian
    from coopsheaf.sheaves.nonlinear import odd_part as odd_part
    from coopsheaf.sheaves.operator import Operator as Operator
    from coopsheaf.sheaves.orthogonal import Cayley as Cayley
    from coopsheaf.sheaves.orthogonal import Euler as Euler
    from coopsheaf.sheaves.orthogonal import ExpScale as ExpScale
    from coopsheaf.sheaves.orthogonal import Householder as Householder
    from coopsheaf.sheaves.orthogonal import MatrixExponential as MatrixExponential
    from coopsheaf.sheaves.orthogonal import Orthogonal as Orthogonal
    from coopsheaf.sheaves.orthogonal import RectifiedScale as RectifiedScale
    from coopsheaf.sheaves.orthogonal import Scale as Scale
    from coopsheaf.sheaves.orthogonal import SoftplusScale as SoftplusScale
    from coopsheaf.sheaves.orthogonal import UnitScale as UnitScale
    from coopsheaf.sheaves.polynomials import Chebyshev as Chebyshev
    from coopsheaf.sheaves.polynomials import Polynomial as Polynomial
    from coopsheaf.sheaves.polynomials import heat as heat
    from coopsheaf.sheaves.polynomials import norm_bound as norm_bound
    from coopsheaf.sheaves.sheaf import DirectedSheaf as DirectedSheaf
    from coopsheaf.sheaves.sheaf import FlatSheaf as FlatSheaf
    from coopsheaf.sheaves.sheaf import Sheaf as Sheaf
    from coopsheaf.sheaves.spectral import Cohomology as Cohomology
    from coopsheaf.sheaves.spectral import cohomology as cohomology
    from coopsheaf.sheaves.spectral import dirichlet_energy as dirichlet_energy
    from coopsheaf.sheaves.spectral import harmonic_space as harmonic_space
    from coopsheaf.sheaves.spectral import numerical_radius as numerical_radius
    from coopsheaf.sheaves.spectral import spectrum as spectrum
    from coopsheaf.sheaves.waves import Wave as Wave
    from coopsheaf.sheaves.waves import needed_damping as needed_damping
    from coopsheaf.sheaves.waves import propagate as propagate
    from coopsheaf.sheaves.waves import stable_step as stable_step
    from coopsheaf.sheaves.waves import stable_steps as stable_steps
    from coopsheaf.sheaves.waves import transient_bound as transient_bound

__getattr__, __dir__, __all__ = attach(__name__)
