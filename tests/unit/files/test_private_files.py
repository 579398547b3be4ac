"""Files that hold secrets by their names: what is looked at first misses none."""

from hypothesis import given
from hypothesis import strategies as st

from isthmus.files.path_rules import compiled
from isthmus.files.private_files import PRIVATE_FILES, is_private

PARTS = st.sampled_from(
    [
        *(
            "a",
            "src",
            "x.pem",
            "X.PEM",
            "server.key",
            "id_rsa",
            ".ENV",
            ".env.local",
            ".env.example",
            ".ssh",
            "known_hosts",
            "\u212a.key",
        ),
        *(
            ".docker",
            "config.json",
            ".config",
            "gcloud",
            ".git",
            "config",
            "credentials",
            ".aws",
            ".kube",
            "client_secretÄ.json",
        ),
        *(
            "service-account-1.json",
            "secrets.yml",
            ".npmrc",
            ".vault_pass",
            ".azure",
            "b.json",
            "terraform.tfstate",
            "K.key",
        ),
    ]
)


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_the_quick_look_decides_as_the_lines_do(parts: list[str]) -> None:
    path = "/w/" + "/".join(parts)
    assert is_private((path,)) is (compiled((PRIVATE_FILES,)).find(path) is not None)
