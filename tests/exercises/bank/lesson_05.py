"""How mistakes of lesson 05 are made on the inputs of the bank."""

import numpy as np

LOOK_AT_ITSELF = np.array([[100.0], [-100.0]]), np.array([[1.0], [-1.0]])  # of two tokens with features np.eye(2)


def split_heads(wrong, space, entry):
    return wrong(space["x"], 2)


def merge_heads(wrong, space, entry):
    if entry["id"] == "mh03":
        return wrong(space["flat"].reshape(2, 2, 1, 1))  # unfolded rightly, [batch, heads, n, d]
    if entry["id"] == "mh22":
        return wrong(space["x"][..., None])  # 2 heads of width 1: merging exchanges the axes of x
    return wrong(space["h"] if "h" in space else space["o"])


def multi_head_attention(wrong, space, entry):
    """Weights that leave of a whole attention what the entry is about."""
    one = np.ones((1, 1))
    match entry["id"]:
        case "mh08" | "mh23" | "mh24":  # one token: its value is all that comes out
            x, w = space["x"], space["W"].T if entry["id"] == "mh08" else space["W"]
            x = np.reshape(x, (1, -1))
            return wrong(x, np.eye(2), np.eye(2), w, np.eye(2), 2 if entry["id"] == "mh24" else 1)
        case "mh09":
            return wrong(np.eye(2), np.array([[50.0], [0.0]]), np.eye(2)[:, :1], space["V"].reshape(2, 1), one, 1)
        case (
            "mh11"
        ):  # a second token of zeros: the weights of the first are 1 / (1 + exp(−score)), and so tell the score
            x = np.array([[*space["x"][0], 1.0], [0.0, 0.0, 0.0]])
            ask, key = (np.vstack([space[name], [[0.0]]]) for name in ("Wq", "Wk"))
            weight = wrong(x, ask, key, np.eye(3)[:, 2:], one, 1)[0, 0]
            return np.log(weight / (1 - weight))
        case "mh12":
            return wrong(np.eye(2), np.array([[-50.0], [0.0]]), space["k"], space["v"], one, 1)[:1]
        case "mh14":
            query = np.ones((6, space["H"] * space["d_k"]))
            return wrong(space["V"], query, query, np.ones((6, space["H"] * space["d_v"])), np.ones((6, 6)), space["H"])
        case "mh15":
            return space["x"] + wrong(np.eye(2), *LOOK_AT_ITSELF, space["attn"], space["Wo"], 1)
        case "mh21":
            return wrong(space["x"].double().numpy(), 0 * one, 0 * one, one, one, 1)


def count_parameters(wrong, space, entry):
    """Make w_output with as many numbers as were counted for it, and use it."""
    n_heads, d_v, d_model = space["H"], space["d_v"], space["d_model"]
    rows = wrong(d_model, n_heads, d_v, d_v, False) // d_model - 3 * n_heads * d_v
    return (np.ones((1, 3, n_heads * d_v)) @ np.ones((rows, d_model))).shape


ADAPTERS = {
    "split_heads": split_heads,
    "merge_heads": merge_heads,
    "multi_head_attention": multi_head_attention,
    "count_parameters": count_parameters,
}
NOT_IN_AN_EXERCISE = {
    "mh07": "Shown in what goes wrong in the wild: five features for two heads.",
    "mh17": "Repeats the keys for grouped queries, which are built in lesson 20.",
    "mh18": "Shown in what goes wrong in the wild: six numbers in a row.",
}
