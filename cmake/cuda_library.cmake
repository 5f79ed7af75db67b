# libthimble_cuda.so, the CUDA backend: loaded by the program when a GPU is asked for
# (src/backend/cuda_library.h). It holds the few parts of the core that it needs a second time, hidden,
# so that it asks nothing of the program that loads it. It can be carried to another machine with the
# program: libraries beside it are found.
file(GLOB_RECURSE cuda_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/backend/cuda/*.cpp
     ${CMAKE_CURRENT_SOURCE_DIR}/backend/cuda/*.cu)
thimble_generate_table(${CMAKE_BINARY_DIR}/generated/cuda_kernel_table.cpp cuda_ CudaKernel
                       "backend/cuda/cuda_kernel.h" all_cuda_kernels ${cuda_files})
list(FILTER cuda_files EXCLUDE REGEX "/entry.cpp$")
thimble_generate_rule_kernels(cuda_rule_files
                              ${CMAKE_CURRENT_SOURCE_DIR}/backend/cuda/update/rule_kernels.cu.in
                              ${CMAKE_BINARY_DIR}/generated rule_ cu)
thimble_generate_table(${CMAKE_BINARY_DIR}/generated/cuda_rule_table.cpp cuda_ CudaRuleKernels
                       "backend/cuda/update/rule_table.h" all_cuda_rules ${cuda_rule_files})

add_library(thimble_cuda_kernels OBJECT ${cuda_files} ${cuda_rule_files}
            ${CMAKE_BINARY_DIR}/generated/cuda_rule_table.cpp
            ${CMAKE_BINARY_DIR}/generated/cuda_kernel_table.cpp)
set_target_properties(thimble_cuda_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON
                      CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(thimble_cuda_kernels PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_include_directories(thimble_cuda_kernels SYSTEM PUBLIC ${CUDNN_INCLUDE}
                           ${CUDAToolkit_INCLUDE_DIRS})
# fmt 9 takes nvcc for a compiler without constexpr; constexpr functions of base run on the device.
target_compile_options(thimble_cuda_kernels PRIVATE
                       "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;--expt-extended-lambda;-DFMT_USE_CONSTEXPR=1>")
if(THIMBLE_WARNINGS_AS_ERRORS)  # of nvcc, of ptxas, and of the host compiler behind them
  target_compile_options(thimble_cuda_kernels PRIVATE
                         "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;-Xcompiler=-Wall;-Xcompiler=-Wextra>")
endif()
target_link_libraries(thimble_cuda_kernels PUBLIC fmt::fmt CUDA::cudart_static CUDA::cublasLt
                      ${CUDNN_LIBRARY})

add_library(thimble_cuda MODULE backend/cuda/entry.cpp base/number/bytes.cpp base/number/dtype.cpp base/number/shape.cpp
            base/nearest_name.cpp base/nf4.cpp base/printable.cpp graph/attrs.cpp graph/coded_weight.cpp graph/op.cpp
            $<TARGET_OBJECTS:thimble_build_id>)
target_link_libraries(thimble_cuda PRIVATE thimble_cuda_kernels)
target_link_options(thimble_cuda PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL)
# In a wheel, NVIDIA's own wheels lie two folders up.
set(beside "$ORIGIN;$ORIGIN/../../nvidia/cudnn/lib;$ORIGIN/../../nvidia/cublas/lib")
set_target_properties(thimble_cuda PROPERTIES CXX_VISIBILITY_PRESET hidden
                      VISIBILITY_INLINES_HIDDEN ON LINKER_LANGUAGE CXX
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib
                      BUILD_RPATH "${beside}" INSTALL_RPATH "${beside}")
