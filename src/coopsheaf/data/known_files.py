"""Address, checksum and size of every published file that a dataset is made of."""

from __future__ import annotations

from coopsheaf.data.files import RemoteFile

_GITHUB = "https://raw.githubusercontent.com"
# Addresses name a revision wherever one is known to hold the file: what is there cannot change.
_PLATONOV = (
    f"{_GITHUB}/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318"
)
_GEOM_GCN = f"{_GITHUB}/graphdml-uiuc-jlu/geom-gcn"
# The revision that the older sheaf papers use; its Cornell has the features and labels of Texas.
_GEOM_GCN_OLD = f"{_GEOM_GCN}/1c4c04f93fa6ada91976cda8d7577eec0e3e5cce"
_LINKX = f"{_GITHUB}/CUAI/Non-Homophily-Large-Scale/82f8f05c5c3ec16bd5b505cc7ad62ab5e09051e6/data"
_DROPBOX = "https://www.dropbox.com/s"

# name: (sha256, size)
_PLATONOV_FILES = {
    "roman_empire": (
        "a58ba741d123bf892fe5c872138d07463d75a2e9012360b8dd78ac2d4766d428",
        20_401_489,
    ),
    "amazon_ratings": (
        "4c3a3e3b9d9f6cba0fede4625a00aad8c5721c1a36ed771367f446763241c7dd",
        27_744_018,
    ),
    "minesweeper": (
        "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3",
        135_045,
    ),
    "tolokers": (
        "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667",
        1_329_769,
    ),
    "questions": (
        "757ebd772bab1475c4dd951ca9e364400c6db161656cff9d21780ee874cf3074",
        47_369_919,
    ),
    "squirrel_filtered": (
        "f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7",
        208_215,
    ),
    "squirrel_filtered_directed": (
        "0526e53252f0b052124f7390829c32e923d432acaf64206191a1144a07b39620",
        249_855,
    ),
    "chameleon_filtered": (
        "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5",
        58_924,
    ),
    "chameleon_filtered_directed": (
        "5a2d40701407188f1661d37a326484b49cc15251e0dedaa7bd380873dac80f21",
        69_275,
    ),
}
# Made from public copies, not published anywhere: they have no address.
_PLATONOV_MADE = {
    "roman_empire_substitute": (
        "adde4f51fecf7682253b92124081f4448f4ffa0ba6878ebeb4ba263ded613d8f",
        3_715_877,
    ),
    "amazon_ratings_partial": (
        "3d909418e0b3a6c6302765d9f938941fac7eed999c35e9d9d605685ec7baf990",
        14_035_348,
    ),
}
# name: ((sha256, size) of the edges, (sha256, size) of the nodes, address of the folder)
_GEOM_GCN_TABLES = {
    "texas": (
        ("0fe85183243a78cbee9b85a684f8240963d04d1020d10e9cd2b8cfb25e33b476", 2_172),
        ("cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3", 624_308),
        f"{_GEOM_GCN_OLD}/new_data/texas",
    ),
    "wisconsin": (
        ("ebd213511c88fce1eda450c2f920600c4b8cbb38f02384856bcc47c6ec1807ae", 3_606),
        ("a32b0aa38d42f0d36841e8a8cb646d197f0ff33a182ac75a2b4476aeed3c7e4b", 856_324),
        f"{_GEOM_GCN_OLD}/new_data/wisconsin",
    ),
    "cornell": (
        ("c4522a00cc40873c8a04a3a07c49e24a48a507eb284ac9c9f2d3e0590351bbb7", 2_001),
        ("cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3", 624_308),
        f"{_GEOM_GCN_OLD}/new_data/cornell",
    ),
    "cornell_corrected": (
        ("44cd9b450ed93656a5265d61e9765ffbd342dc221915c8ea0c68dc4e0565796a", 2_288),
        ("6c078f6bfdd7f89df881bcbaede6d8a41a61811048176a52ba744d640c87de53", 624_492),
        f"{_GEOM_GCN}/master/new_data/cornell",
    ),
    "film": (
        ("997cdce67ea9c29257d3ffe796328391931901cf823830affa453178b60e2c3e", 323_820),
        ("1d5cdd094f8b91e770f6decfca85b35cf42f75d1efb51055fd6af16e11820ff8", 207_718),
        f"{_GEOM_GCN}/master/new_data/film",
    ),
}
_GEOM_GCN_SPLITS = {
    "texas": (
        ("7ba77bf7a8856fcc0ab15623a611b8cdce994e820f577da914123fb4f45272b0", 698),
        ("21cc244a96e3c51ad7993afb4dd227f90e467d82b964bb42d7d9fc500a6ef87f", 701),
        ("b9e96a699ccf3a4c31ffbd03e52b25570889833425d20fa44e06c37b327cf61e", 756),
        ("1a7deeb1285009789d5e6045d7e39f7d019c9223d9a75a2b7ce5e26d33b51f63", 759),
        ("b5419ff3fe31adcae66fdb085d4f47d0b188e9436ab59f438632af969aafc674", 702),
        ("68405fd1b9ff6105d99717220ecbd198785e338bf4a73abee722bbc9703d2667", 691),
        ("8ad78b973164e70e5ac0d282e79adcbc6006e373909fbdfd72a13131e09040b8", 756),
        ("a84bcbf997365bddf5fdf72ed49dc7e435e475f8c6210f8cdee7c8581a2bd6df", 693),
        ("65ba65f296f91d40d2d7d3c9369b67415094a7e254c6eee48cd6d6531c586fdf", 762),
        ("4306981d654ad8835c000c1f73fb6c1e60dfe99e26c13a6073f3b0f4cc3ce6ee", 693),
    ),
    "wisconsin": (
        ("f66f641e191d35d491cd3b63d6c2cd93c4b436da398984b44c19a8d4d7e7b1a5", 805),
        ("534aeb97266bd5a85a8587adf8eebad3f2e001c1240610f24b62c0ad0c2466ee", 739),
        ("047a5b641778ec3a4c76055fd7f18ecb2424c0952f20dfff7e1b17749d8acbdd", 747),
        ("706c27b4c51d046c0316f1e915f093e4a1fff48b3436b3e7c421eab596a99e77", 810),
        ("7ee813605eec086457aaff022cf3837f2f893fcf8bd37e3a8d2ff0c80e4c4f87", 812),
        ("8094ac2bdaf2cbea8f7a48df66a0800c809b2fd5942740e6b0441b660d3a0dd5", 749),
        ("c423a8deea9b18f9ecb6cfd703578e2159df167de01fe7e6195b88995010252d", 735),
        ("57ad808c8d4dd94dc4404124370bbcebb3dcc597c2bea6457bf05f220adf1527", 733),
        ("27d4d62a2a6aea2cdc399302237512ab0d64fb0c84e648112f97c5896274e42f", 741),
        ("3c149cd124a19021031609e0d7743a7be59aae4f88c8d38410138e8f06f5daaf", 744),
    ),
    "cornell": (
        ("14022a1e19ec7fc0a07a2c06a785a2f9dc52809dbcd1c14fc318f7800675d73f", 704),
        ("5568fa27e968a724c92211bf97026a36a08893cf94b218043e49b4c973c35cfb", 700),
        ("763fc1f423395e4172617fa5b6bc0d7adad2241e5fedd1a4f0a098a67f9dc8e9", 695),
        ("4334321cd9ec42de9d51107fb9a6dc310512e0921bc1cff0f390301ee37315fa", 701),
        ("2b6b3ef396f4dc7fcdc276fb16b88bb87409b25879dd672b3a506eca844dd8d7", 759),
        ("1a40ef8b20aa9e1aa850e1abdaba3efac1f66c98ef2c6a59eadefa21136ece6b", 754),
        ("bcddf4ab59eae4c7d47b8a6cec9025a54ec0e6d3f3bdcd7678e201f25ace4642", 758),
        ("2b497e12dfc123d7e7c9bb4fc4a82b5bee18409e109a3e3a04da439cacec964d", 693),
        ("5c4e110d252d7ad156b2e4cd34b6dbd1cecbcc1755f8d72e932cc2a54f2b643c", 701),
        ("80f1531807194d301affbf6f879a4ab4f56a19bdccb62d192e3ecd1b5275f052", 704),
    ),
    "film": (
        ("4505a41d4e90abd94d1ec22571ce528b09ad7cf20d87f764aebd4177590767f5", 4_214),
        ("1871b0d24e3977c41e378fd24acc8025b63f86b77739be77a5b558d1287f207d", 4_231),
        ("d26680e911ef3ecc9fc2a26d90c9d35028c63aadd7a5aea774649d1496c282cb", 4_224),
        ("6755ad5f6a0be8594b344af3d2261eed935b83b73c4d70136e1a7beea7f78cb0", 4_207),
        ("328fdca62b25074f21f2922518e042f24b3b8a1fc378f9dfb2cae36439aed902", 4_233),
        ("5b3161a8dc8de4b2e651ebd56d68e768d1377044895b325566117fe26ab81cb7", 4_224),
        ("e251b38abd4d7931b5e9ae5aba99dcdf87f0be283bdf6e65421274a1c9ef1df6", 4_221),
        ("12164ef9f5620a2f12a387f4f2b8636859d42201101d6d32829ade62d5a98326", 4_205),
        ("405cd1f7f631f678119f8bf2405809e86614d532985beb59566fcf95abd35b3f", 4_217),
        ("505691c5d41bb37b20d085415dcdde2e8e68b5bc4e1feb2c0e361308002012bb", 4_208),
    ),
}
# Relations of Geom-GCN by graph and embedding; of two only the size is known.
_RELATIONS = {
    ("texas", "poincare"): (
        "b0e52067723e80f893d2304d35b86682037ce31b04528db4007dee1257daa645",
        19_729,
    ),
    ("texas", "MDS"): (
        "05af7e7c3e991a97b76419a86347fa632122b3b55777c540a22fde6bd362a94a",
        18_982,
    ),
    ("texas", "struc2vec"): (
        "149becc6472495e3399ebcc5f24768dad601a94ebed12e256cc1a8db82cbe2a6",
        17_180,
    ),
    ("wisconsin", "poincare"): (
        "20cf28a7505c849feec5b9de88e134b78f9ac549a612e9114eca4695a7e5cf78",
        24_196,
    ),
    ("wisconsin", "MDS"): (
        "e5f925a0773b21c39b1ce39d76a4cc2590a131e0b31cb0939f17998aeb7aba02",
        30_306,
    ),
    ("wisconsin", "struc2vec"): (
        "9e6399dcc5bed45f45a37ee16d3f0d23cd688c701bf6ec60ae909468779b4d5d",
        28_796,
    ),
    ("cornell", "poincare"): (
        "3dd7c63383f6109978528cb85d8cde61c68b9dce7932346c60594d92045c381b",
        19_339,
    ),
    ("cornell", "MDS"): (
        "31e4f26d3ae595c597472f7b09c285f18b041509428c5fbd9fcfb8212458a31c",
        18_032,
    ),
    ("cornell", "struc2vec"): (
        "7409611985a5813c7d3eaa13e49766a0d1275dfff8a79389cf97ac6b7315e4c8",
        16_958,
    ),
    ("film", "poincare"): (
        "5888cc19fca3f966f260a9c26ba98938bebc9936f406713ba04d050b3bc1e41e",
        979_329,
    ),
    ("film", "MDS"): (None, 2_135_652),
    ("film", "struc2vec"): (None, 2_209_042),
}
_FB100_FILES = {
    "Reed98": (
        "d12ec74dc8c6e237385975b976c3709555a83629a1260be693fb688e3446070e",
        70_347,
    ),
    "Amherst41": (
        "3108e4b2edb01be05c5a61147583a40e61012820fff7eebe621dd26018caaf00",
        333_541,
    ),
    "Johns_Hopkins55": (
        "fc7243bf257155df03afbc397ab34b5f8eb8e75f40cd1603398e207a033ef50f",
        735_150,
    ),
    "Cornell5": (
        "d9ff76ae34e855cb77b0779a3a320f7f73f848901cb13352e2734c17804c4aec",
        3_543_757,
    ),
}

PENN94_SPLITS = RemoteFile(
    "fb100/fb100-Penn94-splits.npy",
    f"{_LINKX}/splits/fb100-Penn94-splits.npy",
    "88a1060358482d8e25b978ab59c4ff71771388cd5ffac3dd775a3cd9dc85b032",
    581_866,
)
PEPTIDES_FUNC = RemoteFile(
    "lrgb/peptide_multi_class_dataset.csv.gz",
    f"{_DROPBOX}/ol2v01usvaxbsr8/peptide_multi_class_dataset.csv.gz?dl=1",
    "e314f7dfb1ac46ef83fe5f5aa4fe502ad4527da633b64e6b997cb0c452511de3",
    769_970,
)
PEPTIDES_STRUCT = RemoteFile(
    "lrgb/peptide_structure_dataset.csv.gz",
    f"{_DROPBOX}/464u3303eu2u4zp/peptide_structure_dataset.csv.gz?dl=1",
    md5="9786061a34298a0684150f2e4ff13f47",
)
PEPTIDES_SPLIT = RemoteFile(
    "lrgb/splits_random_stratified_peptide.pickle",
    f"{_DROPBOX}/j4zcnx2eipuo0xz/splits_random_stratified_peptide.pickle?dl=1",
    "4573079852cce8867ad2d734c5dd22d77538bbe9f628223a8d4b3b531f6fffd0",
    124_533,
)


def platonov_file(name: str) -> RemoteFile:
    """The npz file of one graph."""
    if name in _PLATONOV_MADE:
        return RemoteFile(f"platonov/{name}.npz", None, *_PLATONOV_MADE[name])
    url = f"{_PLATONOV}/data/{name}.npz"
    return RemoteFile(f"platonov/{name}.npz", url, *_PLATONOV_FILES[name])


def geom_gcn_files(name: str, splits: str | None = None) -> tuple[RemoteFile, ...]:
    """The edges, the nodes and the ten splits; ``splits`` if they have another name."""
    edges, nodes, url = _GEOM_GCN_TABLES[name]
    splits = splits or name
    tables = (("out1_graph_edges.txt", edges), ("out1_node_feature_label.txt", nodes))
    return (
        *(RemoteFile(f"geom-gcn/{name}/{file}", f"{url}/{file}", *known) for file, known in tables),
        *(
            RemoteFile(f"geom-gcn/splits/{file}", f"{_GEOM_GCN}/master/splits/{file}", *known)
            for file, known in (
                (f"{splits}_split_0.6_0.2_{number}.npz", known)
                for number, known in enumerate(_GEOM_GCN_SPLITS[splits])
            )
        ),
    )


def relation_files(name: str) -> dict[str, RemoteFile]:
    """Geom-GCN's files of relations of a graph, by embedding in small letters."""
    found = {}
    for (graph, embedding), known in _RELATIONS.items():
        if graph == name:
            path = f"structural_neighborhood/outf_nodes_space_relation_{name}_{embedding}.txt"
            url = f"{_GEOM_GCN}/master/{path}"
            found[embedding.lower()] = RemoteFile(f"geom-gcn/{path}", url, *known)
    return found


def fb100_file(name: str) -> RemoteFile:
    """The network of one university. The checksum of Penn94 has not been published."""
    url = f"{_LINKX}/facebook100/{name.replace('_', '%20')}.mat"
    sha256, size = _FB100_FILES.get(name, (None, None))
    return RemoteFile(f"fb100/{name}.mat", url, sha256, size)
