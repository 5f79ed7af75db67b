// act(a) * b, of two tensors of one shape (SwiGLU, GeGLU): the gradient reads a and b, and act(a)
// is not kept.
#include <string>

#include "transform/fuse.h"
#include "transform/fusing.h"

namespace thimble {
namespace {

const Form& written_out() {
  static const Form form =
      made("mul",
           {either({made("silu", {any("a")}, "act"), made("gelu", {any("a")}, "act")}), any("b")});
  return form;
}

bool fuse_gate(Fusing& f, NodeId root) {
  const std::optional<Match> m = f.match(root, written_out());
  if (!m) return false;
  const ValueId y = f.graph()[root].outputs[0];
  if (f.shape((*m)["a"]) != f.shape(y) || f.shape((*m)["b"]) != f.shape(y)) return false;
  const Node& act = *f.maker((*m)["act"]);
  const bool by_tanh = act.attrs.text("approximate", "none") == "tanh";
  const std::string gate = f.maker((*m)["act"], "silu") != nullptr ? "silu"
                           : by_tanh                               ? "gelu_tanh"
                                                                   : "gelu";
  const DType kept = f.type(y).dtype;
  const ValueId a = f.in_dtype((*m)["a"], kept), b = f.in_dtype((*m)["b"], kept);
  f.replace(y, f.apply("gated", {a, b}, {{"act", gate}})[0]);
  return true;
}

}  // namespace

extern const PatternDef pattern_gated{.name = "gated", .roots = {"mul"}, .fuse = fuse_gate};

}  // namespace thimble
