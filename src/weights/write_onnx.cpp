#include "weights/write_onnx.h"

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/io/file.h"
#include "base/io/mapped_file.h"
#include "comm/communicator.h"
#include "import/onnx/onnx_model.h"
#include "import/onnx/read_tensor.h"
#include "import/onnx/wire.h"
#include "weights/outside_tensors.h"

namespace thimble {
namespace {

constexpr Bytes kLargestFile = Bytes(int64_t{2} << 30);  // of protocol buffers
constexpr Bytes kLargestRead = Bytes(int64_t{4} << 30);

// Fields one after another, as they come.
class WireWriter {
 public:
  void add(int number, std::string_view bytes) {
    varint(static_cast<uint64_t>(number) << 3 | 2);
    varint(bytes.size());
    out_.append(bytes);
    user_check(
        std::ssize(out_) <= kLargestFile.count,
        "the net takes more than the {} that an ONNX file may have; export it as safetensors",
        to_string(kLargestFile));
  }
  void add(int number, uint64_t value) {
    varint(static_cast<uint64_t>(number) << 3);
    varint(value);
  }
  // As it was read.
  void add(const WireField& field) {
    if (field.kind == 2) return add(field.number, field.text());
    if (field.kind == 0) return add(field.number, field.value);
    varint(static_cast<uint64_t>(field.number) << 3 | static_cast<uint64_t>(field.kind));
    for (int byte = 0; byte < (field.kind == 1 ? 8 : 4); ++byte) {
      out_.push_back(static_cast<char>(field.value >> (8 * byte)));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }

  std::string out_;
};

class Rewriter {
 public:
  Rewriter(const std::string& from, Program& program, const Model& model)
      : beside_(from), program_(program) {
    for (OutsideTensor& place : outside_tensors(model.graph, model.foreign)) {
      places_.emplace(place.name, std::move(place));
    }
  }

  std::string graph(std::span<const std::byte> bytes) {
    WireWriter out;
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      if (field.number == 1) {
        out.add(1, node(field.bytes));
      } else if (field.number == 5) {
        out.add(5, tensor(field.bytes, {}));
      } else {
        out.add(field);
      }
    }
    return out.take();
  }

  // Of a weight that is no tensor of the file by itself; empty: there is none.
  std::string not_written() const {
    for (const auto& [name, place] : places_) {
      if (!written_.contains(name)) return name;
    }
    return "";
  }

 private:
  // For inference: what a node only has for training is left out.
  std::string node(std::span<const std::byte> bytes) {
    std::string_view op, first_output;
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      if (field.number == 4) op = field.text();
      if (field.number == 2 && first_output.empty()) first_output = field.text();
    }
    WireWriter out;
    int inputs = 0, outputs = 0;
    const bool norm = op == "BatchNormalization", dropout = op == "Dropout";
    for (WireReader reader(bytes); reader.next(field);) {
      if (field.number == 1 && ++inputs > 2 && dropout) continue;  // whether it trains
      if (field.number == 2 && ++outputs > 1 && norm) continue;    // statistics of the batch
      if (field.number == 5) {
        std::string_view name;
        WireField part;
        for (WireReader parts(field.bytes); parts.next(part);) {
          if (part.number == 1) name = part.text();
        }
        if (norm && name == "training_mode") continue;
        const bool constant = op == "Constant" && name == "value";
        out.add(5, attribute(field.bytes, constant ? first_output : std::string_view()));
      } else {
        out.add(field);
      }
    }
    return out.take();
  }

  std::string attribute(std::span<const std::byte> bytes, std::string_view constant) {
    WireWriter out;
    WireField field;
    for (WireReader reader(bytes); reader.next(field);) {
      if (field.number == 5 && field.kind == 2) {
        out.add(5, tensor(field.bytes, constant));
      } else {
        out.add(field);
      }
    }
    return out.take();
  }

  // `called`: in place of the name that it has itself.
  std::string tensor(std::span<const std::byte> bytes, std::string_view called) {
    OnnxModel files;
    const OnnxTensor there = read_onnx_tensor(bytes, files, beside_);
    const auto place = places_.find(called.empty() ? there.name : std::string(called));
    const bool trained = place != places_.end() && there.is_real();
    WireWriter out;
    WireField field;
    bool elsewhere = false;
    for (WireReader reader(bytes); reader.next(field);) {
      elsewhere = elsewhere || (field.number == 14 && field.value == 1);
    }
    const bool replaced = trained || elsewhere;
    for (WireReader reader(bytes); reader.next(field);) {
      const bool shape_or_name = field.number == 1 || field.number == 2 || field.number == 8;
      if (!replaced || shape_or_name || field.number == 12) out.add(field);
    }
    if (trained) {
      written_.insert(place->first);
      out.add(9, numbers_of(place->second, there));
    } else if (elsewhere) {
      out.add(9, {reinterpret_cast<const char*>(there.raw.data()), there.raw.size()});
    }
    return out.take();
  }

  // The trained numbers in the type that the file has.
  std::string numbers_of(const OutsideTensor& place, const OnnxTensor& there) {
    const TensorType type = type_of(place, program_.graph());
    internal_check(type.shape == there.shape, "a weight has another shape than in its file");
    std::vector<std::byte> own(static_cast<size_t>(type.bytes().count));
    read_outside_tensor(program_, place, own);
    std::string out(static_cast<size_t>(type.elements() * size_of(there.dtype)), '\0');
    with_float_type(type.dtype, [&]<class From>(TypeTag<From>) {
      with_float_type(there.dtype, [&]<class To>(TypeTag<To>) {
        for (int64_t i = 0; i < type.elements(); ++i) {
          From number;
          std::memcpy(&number, own.data() + i * static_cast<int64_t>(sizeof(From)), sizeof(From));
          const To rounded = static_cast<To>(static_cast<double>(number));
          std::memcpy(out.data() + i * static_cast<int64_t>(sizeof(To)), &rounded, sizeof(To));
        }
      });
    });
    return out;
  }

  FilesBeside beside_;
  Program& program_;
  std::map<std::string, OutsideTensor> places_;
  std::set<std::string> written_;
};

}  // namespace

void write_onnx(const std::string& path, Program& program, const Model& model) {
  const std::string& from = model.first_values;
  user_check(from.ends_with(".onnx") && model.foreign,
             "{} did not come as an ONNX file, in which its weights could go back; export it to a "
             ".safetensors file, or call run.to_onnx() in Python",
             model.options.name);
  const MappedFile file(from, "an ONNX file", kLargestRead);
  Rewriter rewriter(from, program, model);
  WireWriter out;
  WireField field;
  for (WireReader reader(file.bytes()); reader.next(field);) {
    if (field.number == 7 && field.kind == 2) {
      out.add(7, rewriter.graph(field.bytes));
    } else {
      out.add(field);
    }
  }
  const std::string missing = rewriter.not_written();
  user_check(
      missing.empty(),
      "'{}' of the net is no tensor of '{}' by itself, so that it cannot go back there; export "
      "it to a .safetensors file",
      missing, from);
  if (program.ranks() == nullptr || program.ranks()->rank() == 0) write_file(path, out.take());
}

}  // namespace thimble
